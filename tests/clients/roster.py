"""The clients that are run, each with its script and the environment it shares."""

from __future__ import annotations

from dataclasses import dataclass

from environments import Environment, newer_node

# infinity-client wants httpx < 0.28, which the others of this group accept.
LIGHT = Environment(
    "light",
    (
        "openai",
        "cohere",
        "huggingface_hub",
        "numpy",
        "langchain-openai",
        "langchain-community",
        "infinity-client",
        "pillow",
        "requests",
    ),
    token_table=True,
)
GATEWAYS = Environment("gateways", ("litellm", "voyageai"))
# The Cohere integration pins cohere 5.
LLAMAINDEX = Environment(
    "llamaindex",
    (
        "llama-index-embeddings-openai-like",
        "llama-index-embeddings-text-embeddings-inference",
        "llama-index-postprocessor-tei-rerank",
        "llama-index-postprocessor-jinaai-rerank",
        "llama-index-postprocessor-cohere-rerank",
        "llama-index-embeddings-cohere",
    ),
)
HAYSTACK = Environment(
    "haystack",
    ("haystack-ai", "huggingface-api-haystack", "jina-haystack", "cohere-haystack"),
)
NODE_OPENAI = Environment(
    "node-openai",
    ("openai6@npm:openai@6", "openai@latest", *newer_node()),
    node=True,
)
NODE_MORE = Environment(
    "node-more",
    (
        "ai@6",
        "@ai-sdk/openai-compatible@2",
        "@ai-sdk/cohere@3",
        "@langchain/openai",
        "@langchain/core",
        "@huggingface/inference",
        "cohere-ai",
        "voyageai",
    ),
    node=True,
)


@dataclass(frozen=True)
class Client:
    """One of the clients.

    Attributes:
        name: As printed and as an argument of `run.py`.
        script: In this folder.
        environment: What is installed for it.
        packages: Those whose version is worth naming.
        rows: Rows of the matrix that fail if the script does not even run.
    """

    name: str
    script: str
    environment: Environment
    packages: tuple[str, ...]
    rows: tuple[str, ...]

    def versions(self) -> dict[str, str]:
        """Installed version of each package."""
        return self.environment.versions(self.packages)


LIGHT_CLIENTS = (
    Client("openai", "client_openai.py", LIGHT, ("openai",), ("E1", "E4", "E5", "E7")),
    Client("langchain-openai", "client_langchain.py", LIGHT, ("langchain-openai", "tiktoken"), ("E2", "E3")),
    Client("infinity_client", "client_infinity.py", LIGHT, ("infinity-client",), ("E1", "I1", "I2", "R5")),
    Client("langchain-community", "client_langchain_community.py", LIGHT, ("langchain-community",), ("E1",)),
    Client("langchain-local", "client_langchain_local.py", LIGHT, ("langchain-community",), ("E1",)),
    Client("cohere", "client_cohere.py", LIGHT, ("cohere",), ("C1", "C2", "C3", "R1")),
    Client("huggingface_hub", "client_huggingface.py", LIGHT, ("huggingface_hub",), ("T1", "T2")),
    Client("wire", "client_wire.py", LIGHT, (), ("E1", "T3", "T4", "H1")),
)
CLIENTS = (
    *LIGHT_CLIENTS,
    Client("voyageai", "client_voyage.py", GATEWAYS, ("voyageai",), ("E14", "R8")),
    Client("litellm", "client_litellm.py", GATEWAYS, ("litellm",), ("R4",)),
    Client(
        "llama-index",
        "client_llamaindex.py",
        LLAMAINDEX,
        ("llama-index-core", *LLAMAINDEX.packages, "cohere"),
        ("T1", "T3", "R3"),
    ),
    Client("haystack", "client_haystack.py", HAYSTACK, HAYSTACK.packages, ("T3",)),
    Client("openai-node", "client_openai_node.mjs", NODE_OPENAI, ("openai6", "openai"), ("E4",)),
    Client(
        "node",
        "client_node.mjs",
        NODE_MORE,
        (
            "ai",
            "@ai-sdk/openai-compatible",
            "@ai-sdk/cohere",
            "@langchain/openai",
            "@huggingface/inference",
            "cohere-ai",
            "voyageai",
        ),
        ("C2", "E1"),
    ),
)
