"""Which folders of a repository its modules need."""

from __future__ import annotations

import json

from infinity_emb.models.hub.modules import module_folders


def test_the_modules_of_a_router_are_the_folders_with_a_config():
    modules = b'[{"path": "", "type": "sentence_transformers.base.modules.router.Router"}]'
    names = ["modules.json", "router_config.json", "query_0_Static/config.json", "document_0_MLM/config.json"]
    assert module_folders(modules, [*names, "onnx/config.json"]) == ("query_0_Static", "document_0_MLM")


def test_a_module_of_a_router_may_have_weights_and_no_config():
    modules = b'[{"path": "2_Router", "type": "sentence_transformers.models.Asym"}]'
    names = ["2_Router/query_0_StaticEmbedding/model.safetensors", "1_Other/model.safetensors"]
    assert module_folders(modules, names) == ("2_Router", "2_Router/query_0_StaticEmbedding")


def test_the_repositorys_own_folder_is_not_listed():
    assert module_folders(b'[{"path": "", "type": "a.Transformer"}, {"path": "1_Pooling/", "type": "a.Pooling"}]') == (
        "1_Pooling",
    )


def test_a_dot_is_the_repositorys_own_folder():
    rows = [{"path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]
    assert module_folders(json.dumps(rows).encode()) == ()
