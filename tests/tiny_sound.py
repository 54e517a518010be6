"""Builds tiny CLAP checkpoints with random weights, and sounds to read with them, without torch and without network.

    tiny_clap(folder)                one second at 48 kHz, cut where it is longer
    tiny_clap(folder, fusion=True)   longer sounds as four spectrograms

They load in transformers as they are.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

import tiny
import tiny_tokenizers
from infinity_emb.models.graph.swin import relative_index
from tiny_architectures import ARCHITECTURES, HIDDEN, POSITIONS

if TYPE_CHECKING:
    from pathlib import Path

RATE, WINDOW_S, HOP, MELS, DIM = 48_000, 1, 200, 64, 24
FRAMES = RATE * WINDOW_S // HOP + 1
SIDE, WIDTH, DEPTHS, HEADS, WINDOW, PATCH = 128, 8, (2, 2), (2, 4), 8, 8
AUDIO = {
    "model_type": "clap_audio_model",
    "num_mel_bins": MELS,
    "spec_size": SIDE,
    "window_size": WINDOW,
    "patch_size": PATCH,
    "patch_stride": [PATCH, PATCH],
    "patch_embeds_hidden_size": WIDTH,
    "depths": list(DEPTHS),
    "num_attention_heads": list(HEADS),
    "num_hidden_layers": len(DEPTHS),
    "hidden_size": WIDTH * 2 ** (len(DEPTHS) - 1),
    "mlp_ratio": 4.0,
    "aff_block_r": 4,
}
SETTINGS = {
    "feature_extractor_type": "ClapFeatureExtractor",
    "processor_class": "ClapProcessor",
    "feature_size": MELS,
    "sampling_rate": RATE,
    "hop_length": HOP,
    "max_length_s": WINDOW_S,
    "fft_window_size": 1024,
    "frequency_min": 50,
    "frequency_max": 14_000,
    "padding": "repeatpad",
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": False,
    "top_db": None,
}
MEAN_DB, SPREAD_DB = -40.0, 25.0  # of a spectrogram, so that batch normalisation gives numbers around 0


def tiny_clap(folder: Path, *, fusion: bool = False, seed: int = 5) -> Path:
    """Build a checkpoint; its text tower is a RoBERTa."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tokens = tiny_tokenizers.write(folder, "roberta", POSITIONS)
    roberta = ARCHITECTURES["roberta"]
    config = {
        "model_type": "clap",
        "architectures": ["ClapModel"],
        "torch_dtype": "float32",
        "projection_dim": DIM,
        "projection_hidden_act": "relu",
        "text_config": {**roberta.config, **tokens, "model_type": "clap_text_model"},
        "audio_config": {**AUDIO, "enable_fusion": fusion, "fusion_type": "aff_2d" if fusion else None},
    }
    tiny.write_json(folder / "config.json", config)
    truncation = "fusion" if fusion else "rand_trunc"
    tiny.write_json(folder / "preprocessor_config.json", {**SETTINGS, "truncation": truncation})
    random = np.random.default_rng(seed)
    shapes = {**_text_shapes(tokens["vocab_size"]), **_audio_shapes(fusion=fusion)}
    tensors = {name: _random(name, shape, random) for name, shape in shapes.items()}
    save_file(tensors | _counters(tensors), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def tone(hertz: float = 440.0, *, seconds: float = 1.0, rate: int = RATE, channels: int = 1) -> np.ndarray:
    """A tone with faint overtones: float32 `[samples, channels]`, all channels the same."""
    time_s = np.arange(int(seconds * rate)) / rate
    wave = sum(0.4 / number**1.5 * np.sin(2 * np.pi * hertz * number * time_s) for number in range(1, 12))
    return np.repeat(wave.astype(np.float32)[:, None], channels, axis=1)


def noise(seconds: float, *, seed: int = 0, rate: int = RATE) -> np.ndarray:
    """Noise whose colour changes from second to second: float32 `[samples, 1]`."""
    random = np.random.default_rng(seed)
    white = random.normal(0, 0.1, int(seconds * rate))
    anchors = int(seconds) + 2
    loud = np.interp(np.arange(len(white)) / rate, np.arange(anchors), random.random(anchors))
    coloured = np.convolve(white, random.normal(0, 0.3, 32), mode="same") * loud
    return coloured.astype(np.float32)[:, None]


def encode(samples: np.ndarray, container: str = "WAV", subtype: str | None = None, rate: int = RATE) -> bytes:
    """The bytes of a sound file."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=container, subtype=subtype)
    return file.getvalue()


def data_uri(file: bytes, media_type: str = "audio/wav") -> str:
    return f"data:{media_type};base64,{base64.b64encode(file).decode()}"


def _text_shapes(vocabulary: int) -> dict[str, tuple[int, ...]]:
    roberta = ARCHITECTURES["roberta"]
    shapes = dict(roberta.stem)
    for layer in range(roberta.config["num_hidden_layers"]):
        shapes |= {name.format(n=layer): shape for name, shape in roberta.layer.items()}
    shapes |= _linear("pooler.dense", HIDDEN, HIDDEN)
    sized = {name: tuple(vocabulary if axis == "vocabulary" else axis for axis in s) for name, s in shapes.items()}
    return {f"text_model.{name}": shape for name, shape in sized.items()} | _projection("text_projection", HIDDEN)


def _audio_shapes(*, fusion: bool) -> dict[str, tuple[int, ...]]:
    root = "audio_model.audio_encoder."
    patch = root + "patch_embed."
    shapes = _batch_norm(root + "batch_norm", MELS) | _norm(patch + "norm", WIDTH)
    shapes |= {patch + "proj.weight": (WIDTH, 1, PATCH, PATCH), patch + "proj.bias": (WIDTH,)}
    if fusion:
        shapes |= {patch + "mel_conv2d.weight": (WIDTH, 1, PATCH, 3 * PATCH), patch + "mel_conv2d.bias": (WIDTH,)}
        for name, first in (("local_att", 0), ("global_att", 1)):
            for number, rows, columns in ((first, WIDTH // 4, WIDTH), (first + 3, WIDTH, WIDTH // 4)):
                block = f"{patch}fusion_model.{name}."
                shapes |= {f"{block}{number}.weight": (rows, columns, 1, 1), f"{block}{number}.bias": (rows,)}
                shapes |= _batch_norm(f"{block}{number + 1}", rows)
    width = WIDTH
    for stage, depth in enumerate(DEPTHS):
        for number in range(depth):
            shapes |= _swin_layer(f"{root}layers.{stage}.blocks.{number}", width, HEADS[stage])
        if stage < len(DEPTHS) - 1:
            merging = f"{root}layers.{stage}.downsample."
            shapes |= {merging + "reduction.weight": (2 * width, 4 * width)} | _norm(merging + "norm", 4 * width)
            width *= 2
    return shapes | _norm(root + "norm", width) | _projection("audio_projection", width)


def _counters(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a checkpoint holds beside weights: tables of whole numbers, and scales that only training uses."""
    root, positions = "audio_model.audio_encoder.", np.arange(POSITIONS + 2)[None]
    tensors = {
        **{n.replace("running_var", "num_batches_tracked"): np.array(1) for n in weights if n.endswith("running_var")},
        "text_model.embeddings.position_ids": positions,
        "text_model.embeddings.token_type_ids": np.zeros_like(positions),
        "logit_scale_a": np.array(2.65, np.float32),
        "logit_scale_t": np.array(2.65, np.float32),
    }
    for stage, depth in enumerate(DEPTHS):
        for number in range(depth):
            name = f"{root}layers.{stage}.blocks.{number}.attention.self.relative_position_index"
            tensors[name] = relative_index(WINDOW)
    return tensors


def _swin_layer(name: str, width: int, heads: int) -> dict[str, tuple[int, ...]]:
    shapes = {f"{name}.attention.self.relative_position_bias_table": ((2 * WINDOW - 1) ** 2, heads)}
    for part in ("self.query", "self.key", "self.value", "output.dense"):
        shapes |= _linear(f"{name}.attention.{part}", width, width)
    shapes |= _linear(f"{name}.intermediate.dense", 4 * width, width) | _linear(
        f"{name}.output.dense", width, 4 * width
    )
    return shapes | _norm(f"{name}.layernorm_before", width) | _norm(f"{name}.layernorm_after", width)


def _projection(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return _linear(f"{name}.linear1", DIM, width) | _linear(f"{name}.linear2", DIM, DIM)


def _linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def _norm(name: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def _batch_norm(name: str, size: int) -> dict[str, tuple[int, ...]]:
    return _norm(name, size) | {f"{name}.running_mean": (size,), f"{name}.running_var": (size,)}


def _random(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Large enough that inputs give visibly different outputs, small enough that nothing saturates."""
    outer = "audio_encoder.batch_norm" in name
    if name.endswith("running_mean"):
        return (random.normal(0, 0.1, shape) + (MEAN_DB if outer else 0)).astype(np.float32)
    if name.endswith("running_var"):
        return (random.uniform(0.5, 1.5, shape) * (SPREAD_DB**2 if outer else 1)).astype(np.float32)
    if len(shape) == 1:
        centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
        return (centre + random.normal(0, 0.1, shape)).astype(np.float32)
    inputs = int(np.prod(shape[1:]))
    scale = 1.0 if "embedding" in name or "bias_table" in name else 1.5 * inputs**-0.5
    return random.normal(0, scale, shape).astype(np.float32)
