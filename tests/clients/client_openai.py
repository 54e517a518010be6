"""`openai` (Python): embeddings, models, errors, Azure's path."""

from __future__ import annotations

import openai
from checks import (
    AUDIO,
    BUSY_URL,
    DIM,
    EMBED_URL,
    EMBEDDER,
    KEY,
    KEYED_URL,
    PIXEL,
    QUERY,
    RERANKER,
    TEXTS,
    URL,
    VISION,
    check,
    equal,
    images,
    raises,
    ranked_as_expected,
    same,
    sound,
    sounds,
    unpack,
    vectors,
)

CL100K_HELLO_WORLD = [15339, 1917]  # "hello world"


def client(base: str = URL + "/v1", **options):
    return openai.OpenAI(**{"base_url": base, "api_key": "sk-none", "max_retries": 0} | options)


create = client().embeddings.create
for base in (URL, URL + "/v1"):
    route = base.removeprefix(URL) + "/embeddings"
    with check("E1 E6 E7", f"a list, no format, at {route}"):
        answer = client(base).embeddings.create(model=EMBEDDER, input=TEXTS)
        same([item.embedding for item in answer.data], vectors(TEXTS))
        equal(
            [(item.index, item.object) for item in answer.data], [(0, "embedding"), (1, "embedding"), (2, "embedding")]
        )
        equal((answer.object, answer.model), ("list", EMBEDDER))
        assert isinstance(answer.usage.prompt_tokens, int)
        equal(answer.usage.prompt_tokens, answer.usage.total_tokens)
        assert answer.usage.prompt_tokens > 0
    with check("E1", f"one string at {route}"):
        same(client(base).embeddings.create(model=EMBEDDER, input=TEXTS[0]).data[0].embedding, vectors(TEXTS[:1]))
with check("E1 E6", "2048 texts in one call, in order"):
    texts = [f"{TEXTS[index % 3]} {index % 7}" for index in range(2048)]
    answer = create(model=EMBEDDER, input=texts)
    equal([item.index for item in answer.data], list(range(2048)))
    for index in (0, 1000, 2047):
        same(answer.data[index].embedding, vectors([texts[index]]))
with check("E2", "one list of cl100k ids"):
    same(create(model=EMBEDDER, input=CL100K_HELLO_WORLD).data[0].embedding, vectors(["hello world"]))
with check("E2", "several lists of cl100k ids"):
    answer = create(model=EMBEDDER, input=[CL100K_HELLO_WORLD, CL100K_HELLO_WORLD[:1]])
    same([item.embedding for item in answer.data], vectors(["hello world", "hello"]))
with check("E3", "an empty string and white space"):
    answer = create(model=EMBEDDER, input=["", "  \n", TEXTS[0]])
    equal([len(item.embedding) for item in answer.data], [DIM] * 3)
    same(answer.data[2].embedding, vectors(TEXTS[:1]))
    equal(len(create(model=EMBEDDER, input="").data[0].embedding), DIM)
with check("E4", "explicit float gives numbers, explicit base64 a string of little-endian float32"):
    same(create(model=EMBEDDER, input=TEXTS, encoding_format="float").data[1].embedding, vectors(TEXTS)[1])
    text = create(model=EMBEDDER, input=TEXTS, encoding_format="base64").data[1].embedding
    assert isinstance(text, str)
    same(unpack(text), vectors(TEXTS)[1])
with check("E4 E5", "explicit None for format, dimensions and user means absent"):
    answer = create(model=EMBEDDER, input=TEXTS, encoding_format=None, dimensions=None, user=None)
    same([item.embedding for item in answer.data], vectors(TEXTS))
with check("E5", "dimensions: fewer gives a unit vector, the native size and 0 the whole one"):
    short = create(model=EMBEDDER, input=TEXTS[0], dimensions=8).data[0].embedding
    whole = vectors(TEXTS[:1])[0][:8]
    length = sum(number**2 for number in whole) ** 0.5
    same(short, [number / length for number in whole])
    for dimensions in (DIM, 0):
        same(create(model=EMBEDDER, input=TEXTS[0], dimensions=dimensions).data[0].embedding, vectors(TEXTS[:1]))
with check("E5", "too many dimensions are a BadRequestError that says how many there are"):
    error = raises(openai.BadRequestError, create, model=EMBEDDER, input="x", dimensions=DIM + 1)
    assert str(DIM) in error.body["message"], error.body
with check("E9", "modality text is the default, and an image on a text model is a clear BadRequestError"):
    answer = create(model=EMBEDDER, input=TEXTS, extra_body={"modality": "text"})
    same([item.embedding for item in answer.data], vectors(TEXTS))
    error = raises(openai.BadRequestError, create, model=EMBEDDER, input=[PIXEL], extra_body={"modality": "image"})
    assert "image" in error.body["message"], error.body
with check("E9", "modality image, as floats and as base64"):
    for form in ("float", "base64"):
        answer = create(model=VISION, input=[PIXEL], encoding_format=form, extra_body={"modality": "image"})
        found = answer.data[0].embedding
        same(unpack(found) if isinstance(found, str) else found, images([PIXEL])[0])
with check("E9", "modality audio, as floats and as base64"):
    for form in ("float", "base64"):
        answer = create(model=AUDIO, input=[sound(440)], encoding_format=form, extra_body={"modality": "audio"})
        found = answer.data[0].embedding
        same(unpack(found) if isinstance(found, str) else found, sounds([sound(440)])[0])
with check("E8", "unknown fields are ignored"):
    create(model=EMBEDDER, input="x", extra_body={"drop_params": True, "options": {}, "parameters": {}, "priority": 1})
with check("E13", "truncate_prompt_tokens cuts"):
    answer = create(model=EMBEDDER, input="a dog sat on the mat", extra_body={"truncate_prompt_tokens": 4})
    equal(answer.usage.prompt_tokens, 4)
with check("I1", "models.list, and models.retrieve of a name with a slash"):
    assert {EMBEDDER, RERANKER} <= {model.id for model in client().models.list()}
    equal(client().models.retrieve(EMBEDDER).id, EMBEDDER)
with check("R1 R3", "client.post on /rerank, as users of vLLM write it"):
    body = {"model": RERANKER, "query": QUERY, "documents": TEXTS}
    results = client().post("/rerank", cast_to=object, body=body)["results"]
    ranked_as_expected([item["index"] for item in results], [item["relevance_score"] for item in results])
with check("H2", "every answer carries x-request-id"):
    assert create(model=EMBEDDER, input="x")._request_id
    assert raises(openai.APIStatusError, create, model=EMBEDDER, input=3).request_id
with check("E1", "a wrong body is a 4xx with a message"):
    error = raises((openai.BadRequestError, openai.UnprocessableEntityError), create, model=EMBEDDER, input={"a": 1})
    assert error.body["message"], error.body
with check("I1", "an unknown model among several names those there are; a model alone answers to any name"):
    error = raises((openai.NotFoundError, openai.BadRequestError), create, model="text-embedding-ada-002", input="x")
    assert EMBEDDER in error.body["message"], error.body
    equal(client(EMBED_URL + "/v1").embeddings.create(model="text-embedding-ada-002", input="x").model, EMBEDDER)
with check("H1", "overload is a RateLimitError with an integer Retry-After"):
    error = raises(openai.RateLimitError, client(BUSY_URL + "/v1").embeddings.create, model="m", input="x")
    assert int(error.response.headers["retry-after"]) >= 1
    assert error.body["message"]
with check("E1", "with a key configured: the right one works, a wrong one is an AuthenticationError"):
    client(KEYED_URL + "/v1", api_key=KEY).embeddings.create(model="m", input="x")
    raises(openai.AuthenticationError, client(KEYED_URL + "/v1", api_key="no").embeddings.create, model="m", input="x")
with check("E15", "AzureOpenAI, with an api-key header"):
    azure = {"api_version": "2024-10-21", "max_retries": 0}
    for url, key in ((URL, "any"), (KEYED_URL, KEY)):
        answer = openai.AzureOpenAI(azure_endpoint=url, api_key=key, **azure).embeddings.create(
            model=EMBEDDER, input=TEXTS
        )
        same([item.embedding for item in answer.data], vectors(TEXTS))
    wrong = openai.AzureOpenAI(azure_endpoint=KEYED_URL, api_key="no", **azure)
    raises(openai.AuthenticationError, wrong.embeddings.create, model=EMBEDDER, input="x")
