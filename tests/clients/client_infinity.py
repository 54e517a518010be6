"""`infinity_client`: every generated call, and InfinityVisionAPI."""

from __future__ import annotations

import asyncio
import io

import numpy as np
from checks import (
    AUDIO,
    AUDIO_DIM,
    CLASSIFIER,
    DIM,
    EMBED_URL,
    EMBEDDER,
    KEY,
    KEYED_URL,
    LABELS,
    PIXEL,
    QUERY,
    RERANKER,
    TEXTS,
    URL,
    VISION,
    VISION_DIM,
    VISION_URL,
    check,
    equal,
    falling,
    images,
    ranked_as_expected,
    same,
    sound,
    sounds,
    vectors,
)
from infinity_client import AuthenticatedClient, Client
from infinity_client.api.default import classify, embeddings, embeddings_audio, embeddings_image, health, models, rerank
from infinity_client.api.default import metrics_metrics_get as metrics
from infinity_client.models import (
    AudioEmbeddingInput,
    ClassifyInput,
    EmbeddingEncodingFormat,
    HTTPValidationError,
    ImageEmbeddingInput,
    OpenAIEmbeddingInputAudio,
    OpenAIEmbeddingInputImage,
    OpenAIEmbeddingInputText,
    RerankInput,
)
from infinity_client.vision_client import InfinityVisionAPI
from PIL import Image

client = Client(base_url=URL)


def text(model: str = EMBEDDER, **options):
    return OpenAIEmbeddingInputText(input_=TEXTS, model=model, **options)


with check("E1 E5 E6 E7", "embeddings: dimensions 0, modality text, strict enums"):
    answer = embeddings.sync(client=client, body=text())
    same([item.embedding for item in answer.data], vectors(TEXTS))
    equal((str(answer.object_), answer.model, answer.data[2].index), ("list", EMBEDDER, 2))
    assert answer.usage.total_tokens > 0
    assert answer.id
    assert answer.created > 0
with check("E1", "embeddings with the client's own model name, one model served"):
    answer = embeddings.sync(client=Client(base_url=EMBED_URL), body=OpenAIEmbeddingInputText(input_=TEXTS))
    equal(answer.model, EMBEDDER)
with check("E4", "embeddings with encoding_format float, and asynchronously"):
    body = text(encoding_format=EmbeddingEncodingFormat.FLOAT)
    same([item.embedding for item in asyncio.run(embeddings.asyncio(client=client, body=body)).data], vectors(TEXTS))
with check("E5", "embeddings with dimensions"):
    answer = embeddings.sync(client=client, body=text(dimensions=8))
    equal([len(item.embedding) for item in answer.data], [8] * 3)
with check("R1 R3 R4 R5", "rerank with documents: strings, object rerank, usage"):
    body = RerankInput(query=QUERY, documents=TEXTS, model=RERANKER, return_documents=True)
    answer = rerank.sync(client=client, body=body)
    equal((str(answer.object_), answer.model), ("rerank", RERANKER))
    assert answer.usage.total_tokens > 0
    ranked_as_expected([item.index for item in answer.results], [item.relevance_score for item in answer.results])
    equal([item.document for item in answer.results], [TEXTS[item.index] for item in answer.results])
with check("R2 R9", "rerank with top_n, and raw scores that the sigmoid turns into scores"):
    answer = rerank.sync(client=client, body=RerankInput(query=QUERY, documents=TEXTS, model=RERANKER, top_n=9))
    equal(len(answer.results), 3)
    raw = rerank.sync(client=client, body=RerankInput(query=QUERY, documents=TEXTS, model=RERANKER, raw_scores=True))
    logits = np.array([item.relevance_score for item in raw.results])
    same(1 / (1 + np.exp(-logits)), [item.relevance_score for item in answer.results])
with check("I2", "classify: labels and scores by falling score, and raw scores"):
    answer = classify.sync(client=client, body=ClassifyInput(input_=TEXTS, model=CLASSIFIER))
    equal((str(answer.object_), answer.model, len(answer.data)), ("classify", CLASSIFIER, 3))
    for row in answer.data:
        equal({item.label for item in row}, LABELS)
        falling([item.score for item in row])
        same(sum(item.score for item in row), 1.0)
    raw = classify.sync(client=client, body=ClassifyInput(input_=TEXTS, model=CLASSIFIER, raw_scores=True))
    found = np.exp([item.score for item in raw.data[0]])
    same(found / found.sum(), [item.score for item in answer.data[0]])
with check("I1", "models: strict enums, stats and capabilities"):
    answer = models.sync(client=client)
    found = {model.id: model.capabilities for model in answer.data}
    for name, capability in ((EMBEDDER, "embed"), (RERANKER, "rerank"), (CLASSIFIER, "classify")):
        assert capability in found[name], found
    for model in answer.data:
        equal(str(model.owned_by), "infinity")
        assert model.backend
        assert {"queue_fraction", "queue_absolute", "results_pending", "batch_size"} <= set(model.stats.to_dict())
with check("I1", "health and metrics"):
    assert health.sync_detailed(client=client).status_code == 200
    assert b"http_requests_total" in metrics.sync_detailed(client=client).content
with check(
    "E9 I3", "images and sounds on a text model, by modality and on the deprecated routes, are refused with 400"
):
    for api, body in (
        (embeddings, OpenAIEmbeddingInputImage(input_=PIXEL, model=EMBEDDER)),
        (embeddings, OpenAIEmbeddingInputAudio(input_=sound(440), model=EMBEDDER)),
        (embeddings_image, ImageEmbeddingInput(input_=PIXEL, model=EMBEDDER)),
        (embeddings_audio, AudioEmbeddingInput(input_=sound(440), model=EMBEDDER)),
    ):
        answer = api.sync_detailed(client=client, body=body)
        assert answer.status_code == 400, (answer.status_code, answer.content)
with check("E9 I3", "images by modality and on the deprecated route, of the length of texts' vectors"):
    body = OpenAIEmbeddingInputImage(input_=[PIXEL, PIXEL], model=VISION)
    answer = embeddings.sync(client=client, body=body)
    same([item.embedding for item in answer.data], images([PIXEL, PIXEL]))
    assert answer.usage.total_tokens > 0
    answer = embeddings_image.sync(client=client, body=ImageEmbeddingInput(input_=PIXEL, model=VISION))
    same([item.embedding for item in answer.data], images([PIXEL]))
    answer = embeddings.sync(client=client, body=text(VISION))
    equal([len(item.embedding) for item in answer.data], [VISION_DIM] * 3)
with check("E9 I3", "sounds by modality and on the deprecated route, mono and stereo, in order, beside texts"):
    sources = [sound(440), sound(3000), sound(440, 2)]
    answer = embeddings.sync(client=client, body=OpenAIEmbeddingInputAudio(input_=sources, model=AUDIO))
    found = [item.embedding for item in answer.data]
    same(found, sounds(sources))
    same(found[0], found[2])
    assert np.dot(found[0], found[1]) < 0.99
    assert answer.usage.total_tokens > 0
    answer = embeddings_audio.sync(client=client, body=AudioEmbeddingInput(input_=sources[1], model=AUDIO))
    same(answer.data[0].embedding, found[1])
    answer = embeddings.sync(client=client, body=text(AUDIO))
    equal([len(item.embedding) for item in answer.data], [AUDIO_DIM] * 3)
with check("E9", "one bad sound among good ones is named"):
    body = OpenAIEmbeddingInputAudio(input_=[sound(440), "data:audio/wav;base64,AAAA"], model=AUDIO)
    answer = embeddings.sync_detailed(client=client, body=body)
    equal(answer.status_code, 400)
    assert b"Item 1" in answer.content, answer.content
with check("E9 I1", "models: a model that reads images or sounds says so"):
    found = {model.id: set(model.capabilities) for model in models.sync(client=client).data}
    equal((found[VISION], found[AUDIO]), ({"embed", "image_embed"}, {"embed", "audio_embed"}))
with check("E5", "a 422 is parsed into the client's own class"):
    body = text()
    body.input_ = []
    answer = embeddings.sync_detailed(client=client, body=body)
    assert answer.status_code in (400, 422), answer.status_code
    assert answer.status_code == 400 or isinstance(answer.parsed, HTTPValidationError)
with check("E1", "AuthenticatedClient with the key"):
    keyed = AuthenticatedClient(base_url=KEYED_URL, token=KEY)
    same([item.embedding for item in embeddings.sync(client=keyed, body=text()).data], vectors(TEXTS))
    equal(embeddings.sync_detailed(client=Client(base_url=KEYED_URL), body=text()).status_code, 401)
with check("E4 E9", "InfinityVisionAPI: text through base64"):
    future = InfinityVisionAPI(url=EMBED_URL, format="base64").embed(model=EMBEDDER, sentences=TEXTS)
    found, tokens = future.result(timeout=60)
    same(np.array(found).reshape(3, DIM), vectors(TEXTS))
    assert tokens > 0
with check("E9", "InfinityVisionAPI: an image on a text model is an error, not a wrong vector"):
    picture = io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "JPEG")
    future = InfinityVisionAPI(url=EMBED_URL, format="base64").image_embed(
        model=EMBEDDER, images=[Image.open(io.BytesIO(picture.getvalue()))]
    )
    assert future.exception(timeout=60) is not None
with check("E4 E9", "InfinityVisionAPI: texts and an image, through base64"):
    picture = Image.new("RGB", (40, 30), (200, 40, 90))
    api = InfinityVisionAPI(url=VISION_URL, format="base64")
    found, tokens = api.image_embed(model=VISION, images=[picture]).result(timeout=60)
    made = np.array(found).reshape(1, VISION_DIM)
    same((made**2).sum(), 1.0)
    assert tokens > 0
    found, _ = api.embed(model=VISION, sentences=TEXTS).result(timeout=60)
    equal(np.array(found).reshape(3, -1).shape, (3, VISION_DIM))
