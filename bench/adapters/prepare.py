"""Write the model in the formats that peers need; run with the interpreter of the torch environment.

Usage: python prepare.py MODEL_FOLDER OUTPUT_FOLDER: makes OUTPUT/onnx (ONNX file) and OUTPUT/ctranslate2.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path


def main(model: Path, output: Path) -> None:
    _once(output / "onnx", lambda folder: _export_onnx(model, folder))
    _once(output / "ctranslate2", lambda folder: _convert(model, folder))


def _once(folder: Path, write: object) -> None:
    """A folder exists only when it is complete."""
    if folder.exists():
        return
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        write(part)
    except Exception as error:  # noqa: BLE001 - whatever an exporter raises, the other format is still wanted
        print(f"{folder.name}: {error!r}", file=sys.stderr)
        return
    part.rename(folder)


def _export_onnx(model: Path, folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    settings = {"export": True, "provider": "CPUExecutionProvider"}
    SentenceTransformer(str(model), device="cpu", backend="onnx", model_kwargs=settings).save_pretrained(str(folder))
    for path in model.iterdir():  # fastembed reads the tokenizer's files, as they were
        if path.suffix in {".json", ".txt"} and not (folder / path.name).exists():
            shutil.copy(path, folder)
    _keep_length(model, folder)


def _keep_length(model: Path, folder: Path) -> None:
    """fastembed cuts where the tokenizer's settings say (128 tokens), the others where the repository says (256)."""
    longest = json.loads((model / "sentence_bert_config.json").read_text())["max_seq_length"]
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "max_length": longest, "model_max_length": longest}, indent=1))


def _convert(model: Path, folder: Path) -> None:
    import ctranslate2

    ctranslate2.converters.TransformersConverter(str(model)).convert(str(folder), force=True)
    shutil.copy(model / "tokenizer.json", folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
