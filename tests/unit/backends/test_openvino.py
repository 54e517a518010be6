"""What OpenVINO refuses to compute because it would be wrong."""

from __future__ import annotations

import dataclasses

import pytest

import tiny
from forward import opened, spec_of
from infinity_emb.errors import ConfigurationError
from infinity_emb.types import Dtype

pytest.importorskip("openvino")


@pytest.mark.parametrize("dtype", [Dtype.BFLOAT16, Dtype.FLOAT16])
def test_positions_that_depend_on_the_length_of_a_text_are_not_computed_in_16_bits(dtype, tmp_path):
    spec = spec_of(tiny.tiny_bert(tmp_path))
    scaled = {"max_position_embeddings": 32, "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    spec = dataclasses.replace(spec, config=spec.config | scaled)
    with pytest.raises(ConfigurationError, match=r"'dynamic'.*16 bits"), opened("openvino", spec, dtype=dtype):
        pass
