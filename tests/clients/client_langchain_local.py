"""`langchain-community` InfinityEmbeddingsLocal, which imports our package as if it were the original.

The package and what it needs are taken from the environment of the server, behind the client's own.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys

from checks import TEXTS, check, equal, raises, same, vectors

sys.path.extend(path for path in os.environ["CLIENTS_SERVER_PATH"].split(os.pathsep) if path)

from langchain_community.embeddings import InfinityEmbeddingsLocal

MODEL = os.environ["CLIENTS_MODEL"]


async def used_as_documented(embeddings: InfinityEmbeddingsLocal) -> list[list[float]]:
    async with embeddings:
        first = await embeddings.aembed_documents(TEXTS)
        same(await embeddings.aembed_query(TEXTS[0]), first[0])
    return first


with check("E1 E6", "inside `async with`, twice, by the backend name optimum"):
    local = InfinityEmbeddingsLocal(model=MODEL, revision=None, device="cpu", batch_size=8, backend="optimum")
    same(asyncio.run(used_as_documented(local)), vectors(TEXTS))
    same(asyncio.run(used_as_documented(local)), vectors(TEXTS))
with check("E1", "started on the fly, by the synchronous calls"):
    local = InfinityEmbeddingsLocal(model=MODEL, backend="optimum", model_warmup=False)
    same(local.embed_documents(TEXTS), vectors(TEXTS))
    equal(len(local.embed_query(TEXTS[0])), len(vectors(TEXTS)[0]))
with check("E1", "as it comes, with the backend torch; where torch is missing, the error names it"):
    if importlib.util.find_spec("torch"):
        same(asyncio.run(used_as_documented(InfinityEmbeddingsLocal(model=MODEL, device="cpu"))), vectors(TEXTS))
    else:
        assert "torch" in str(raises(Exception, InfinityEmbeddingsLocal, model=MODEL, device="cpu"))
