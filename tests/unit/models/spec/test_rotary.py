"""Which checkpoints read texts whose length changes how they turn."""

from __future__ import annotations

import dataclasses

import pytest

import tiny
from forward import spec_of
from infinity_emb.models.spec.rotary import depends_on_length


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({}, ""),
        ({"rope_scaling": None, "rope_parameters": {"rope_type": "linear", "factor": 2.0}}, ""),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"rope_scaling": {"type": "dynamic"}, "max_position_embeddings": 64}, ""),
        ({"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 63}}, "longrope"),
        ({"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 64}}, ""),
        ({"rope_scaling": {"type": "su"}, "original_max_position_embeddings": 40}, "su"),
        ({"rope_parameters": {"full_attention": {"rope_type": "dynamic"}, "sliding_attention": {}}}, "dynamic"),
    ],
)
def test_a_scaling_counts_where_a_text_can_be_longer_than_it_was_trained_for(config, kind, tmp_path):
    spec = spec_of(tiny.tiny_bert(tmp_path))
    spec = dataclasses.replace(spec, config={"max_position_embeddings": 32} | config, max_length=64)
    assert depends_on_length(spec) == kind
