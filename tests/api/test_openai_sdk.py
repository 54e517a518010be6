"""The `openai` package, in process, against the application."""

from __future__ import annotations

import httpx
import numpy as np
import openai
import pytest

from api.fake_engine import DIM, fake_vector
from infinity_emb.errors import NotReadyError, OverloadedError


def sdk(served, base="http://testserver/v1", **rest):
    transport = httpx.ASGITransport(served.app)
    return openai.AsyncOpenAI(
        base_url=base, api_key="sk-x", max_retries=0, http_client=httpx.AsyncClient(transport=transport), **rest
    )


def unit(text):
    return fake_vector(text) / np.linalg.norm(fake_vector(text))


@pytest.mark.parametrize("base", ["http://testserver/v1", "http://testserver"])
@pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}])
def test_vectors_come_as_numbers(served, base, options):
    answer = served.run(lambda _: sdk(served, base).embeddings.create(model="m", input=["a", "b"], **options))
    np.testing.assert_allclose([item.embedding for item in answer.data], [unit("a"), unit("b")], atol=1e-6)
    assert answer.usage.total_tokens == 6
    assert answer.model == "fake/model"


def test_explicit_base64_is_handed_through(served):
    answer = served.run(lambda _: sdk(served).embeddings.create(model="m", input="a", encoding_format="base64"))
    assert isinstance(answer.data[0].embedding, str)


def test_dimensions_and_extra_fields_are_passed(served):
    create = sdk(served).embeddings.create
    answer = served.run(lambda _: create(model="m", input="a", dimensions=4, extra_body={"input_type": "query"}))
    assert len(answer.data[0].embedding) == 4
    assert served.engine.calls[-1][2].text.input_type == "query"


def test_models_are_listed_and_found_with_a_slash(served):
    async def main(_):
        client = sdk(served)
        names = [model.id async for model in client.models.list()]
        return names, (await client.models.retrieve("fake/model")).id

    assert served.run(main) == (["fake/model"], "fake/model")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"input": []}, openai.UnprocessableEntityError),
        ({"input": "x", "dimensions": DIM + 1}, openai.BadRequestError),
    ],
)
def test_refusals_become_the_sdks_own_errors(served, body, kind):
    with pytest.raises(kind) as caught:
        served.run(lambda _: sdk(served).embeddings.create(model="m", **body))
    assert caught.value.param in {"input", "dimensions"}
    assert caught.value.request_id


@pytest.mark.parametrize(
    ("error", "kind"),
    [(OverloadedError("full"), openai.RateLimitError), (NotReadyError("down"), openai.InternalServerError)],
)
def test_overload_and_absence_become_what_the_sdk_retries(served, error, kind):
    served.engine.error = error
    with pytest.raises(kind):
        served.run(lambda _: sdk(served).embeddings.create(model="m", input="a"))


def test_a_wrong_key_becomes_an_authentication_error(serve):
    server = serve(api_keys=("other",))
    with pytest.raises(openai.AuthenticationError):
        server.run(lambda _: sdk(server).embeddings.create(model="m", input="a"))
