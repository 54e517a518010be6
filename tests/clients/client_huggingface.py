"""`huggingface_hub.InferenceClient`: the exact URL it is given, on the origin and on /embed."""

from __future__ import annotations

from checks import (
    BUSY_URL,
    CLASSIFY_URL,
    DIM,
    EMBED_URL,
    KEY,
    KEYED_URL,
    LABELS,
    TEXTS,
    URL,
    check,
    equal,
    raises,
    same,
    vectors,
)
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

for url in (URL, URL + "/", EMBED_URL, EMBED_URL + "/embed"):
    place = url.removeprefix(URL).removeprefix(EMBED_URL) or "the origin"
    rows = "T1" if url.endswith("/embed") else "T2"
    with check(rows, f"feature_extraction of one text at {place}, {'all models' if URL in url else 'alone'}"):
        found = InferenceClient(model=url).feature_extraction(TEXTS[0])
        equal(found.shape, (1, DIM))
        same(found, vectors(TEXTS[:1]))
with check("T1", "feature_extraction of several texts"):
    same(InferenceClient(model=URL + "/embed").feature_extraction(TEXTS), vectors(TEXTS))
with check("T2", "base_url in place of model"):
    same(InferenceClient(base_url=URL).feature_extraction(TEXTS[0]), vectors(TEXTS[:1]))
with check("T1 T2", "every option: normalize, truncate, truncation_direction, dimensions"):
    client = InferenceClient(model=EMBED_URL)
    options = {"normalize": True, "truncate": True, "truncation_direction": "left"}
    same(client.feature_extraction(TEXTS[0], **options), vectors(TEXTS[:1]))
    same(client.feature_extraction(TEXTS[0], dimensions=8), vectors(TEXTS[:1], dimensions=8))
    raw = client.feature_extraction(TEXTS[0], normalize=False)[0]
    length = float((raw**2).sum()) ** 0.5
    assert abs(length - 1) > 1e-3, "normalize=False gave a unit vector"
    same(raw / length, vectors(TEXTS[:1]))
    long = "a dog sat on the mat " * 40
    left = client.feature_extraction(long + "paris", truncation_direction="left", truncate=True)
    right = client.feature_extraction(long + "paris", truncation_direction="right", truncate=True)
    assert abs(left - right).max() > 1e-3, "the direction of truncation made no difference"
with check("T1", "an unknown prompt_name is an error that names it"):
    error = raises(HfHubHTTPError, InferenceClient(model=EMBED_URL).feature_extraction, "x", prompt_name="nobody")
    assert "nobody" in str(error), error
for url in (URL, EMBED_URL, EMBED_URL + "/similarity"):
    with check("T7", f"sentence_similarity at {'/similarity' if 'sim' in url else 'the origin'}"):
        found = InferenceClient(model=url).sentence_similarity(TEXTS[0], TEXTS[1:])
        source, *others = vectors(TEXTS)
        same(found, [sum(a * b for a, b in zip(source, other, strict=True)) for other in others])
for url in (CLASSIFY_URL, CLASSIFY_URL + "/predict", URL + "/predict"):
    with check("T5 T2" if url == CLASSIFY_URL else "T5", f"text_classification at {url.split('/', 3)[-1][-7:]}"):
        found = InferenceClient(model=url).text_classification(TEXTS[0])
        equal({item.label for item in found}, LABELS)
        assert abs(sum(item.score for item in found) - 1) < 1e-5, found
        equal(len(InferenceClient(model=url).text_classification(TEXTS[0], top_k=1)), 1)
with check("H1 H2", "overload is an HfHubHTTPError 429 with a request id"):
    error = raises(HfHubHTTPError, InferenceClient(model=BUSY_URL).feature_extraction, "x")
    equal(error.response.status_code, 429)
    assert int(error.response.headers["retry-after"]) >= 1
    assert error.request_id
with check("T2", "with a key configured: the right token works, none is a 401"):
    same(InferenceClient(model=KEYED_URL, token=KEY).feature_extraction(TEXTS[0]), vectors(TEXTS[:1]))
    error = raises(HfHubHTTPError, InferenceClient(model=KEYED_URL, token=None).feature_extraction, "x")
    equal(error.response.status_code, 401)
