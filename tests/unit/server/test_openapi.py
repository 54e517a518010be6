from __future__ import annotations

import jsonschema
import msgspec
import pytest

from infinity_emb.server.openai import EmbeddingBody
from infinity_emb.server.openapi import document
from infinity_emb.server.rerank import RerankBody
from infinity_emb.server.routes import all_routes
from infinity_emb.server.settings import HttpSettings

SETTINGS = HttpSettings()
VALUES = [True, False, 0, 1, 2, -3, 2.0, 1.5, "true", "FALSE", "yes", "0", "64", "5.0", "007", "null", None, "", [], {}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (EmbeddingBody, "dimensions"),
        (EmbeddingBody, "normalize"),
        (EmbeddingBody, "truncate"),
        (EmbeddingBody, "prompt"),
        (RerankBody, "return_documents"),
    ],
)
def test_the_schema_allows_exactly_what_decoding_takes(body, field, value):
    schemas = document(all_routes(SETTINGS), SETTINGS)["components"]["schemas"]
    schema = schemas[body.__name__]["properties"][field]
    allowed = jsonschema.Draft202012Validator(schema).is_valid(value)
    whole = {"query": "q", field: value} if body is RerankBody else {field: value}
    decoder = msgspec.json.Decoder(body, strict=False)
    try:
        decoder.decode(msgspec.json.encode(whole))
        taken = True
    except msgspec.ValidationError:
        taken = False
    assert allowed == taken
