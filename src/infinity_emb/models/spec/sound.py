"""Reads how an audio model wants its sounds, from preprocessor_config.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinity_emb.models.spec.files import ConfigFile
from infinity_emb.models.spec.image import FILE
from infinity_emb.models.spec.image import read_options as media_options
from infinity_emb.models.spec.media import MediaSpec
from infinity_emb.models.spec.towers import AUDIO, tower_config
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import Repository

SPECTROGRAMS = "input_features"
KIND = "ClapFeatureExtractor"
FUSION, CROP = "fusion", "rand_trunc"
PADDINGS = ("repeatpad", "repeat", "pad")
# A model with feature fusion reads a sound as a whole; this bounds the work for one.
MAX_FUSED_S = 300


@dataclass(frozen=True, slots=True)
class SoundSpec:
    """What becomes of a sound before the model sees it (CLAP: Wu et al. 2023).

    Attributes:
        rate: Samples a second.
        window: Samples that one spectrogram covers.
        hop: Samples between two frames.
        fft_size: Samples a frame.
        mels: Mel bands.
        lowest_hz: Where the first band begins.
        highest_hz: Where the last band ends.
        fusion: Longer sounds give four spectrograms (the whole, shrunk, and three windows) instead of one window.
        padding: What fills shorter ones: `repeatpad`, `repeat` or `pad`.
    """

    rate: int
    window: int
    hop: int
    fft_size: int
    mels: int
    lowest_hz: float
    highest_hz: float
    fusion: bool
    padding: str

    @property
    def frames(self) -> int:
        """Frames of a spectrogram."""
        return self.window // self.hop + 1

    @property
    def channels(self) -> int:
        """Spectrograms a sound."""
        return 4 if self.fusion else 1

    @property
    def most_samples(self) -> int:
        """Samples of a sound that are looked at."""
        return MAX_FUSED_S * self.rate if self.fusion else self.window


def read_sounds(repository: Repository, folder: str, config: ConfigFile) -> MediaSpec:
    """The sounds of a model with an HTSAT in it.

    Raises:
        CheckpointError: A file is missing or broken, or its options give spectrograms of another size than the model
            reads.
    """
    settings = media_options(repository, folder, "feature_extractor").data
    options = read_options(settings)
    audio = ConfigFile(f"{config.name}: {AUDIO}", tower_config(config.data, AUDIO))
    if options.mels != audio.needed_whole("num_mel_bins"):
        raise audio.error("num_mel_bins", f"{FILE} gives {options.mels} mel bands (feature_size). Correct one of them.")
    if options.fusion != audio.flag("enable_fusion", default=False):
        wanted, found = (FUSION, CROP) if not options.fusion else (CROP, FUSION)
        raise audio.error("enable_fusion", f"it needs truncation {wanted!r}, but {FILE} says {found!r}. Correct one.")
    # A token of the last stage is about as wide as one of a text, and all stages cost the same.
    grid = audio.needed_whole("spec_size") // _edge(audio.data["patch_stride"]) // 2 ** (len(audio.data["depths"]) - 1)
    shape = (options.channels, options.frames, options.mels)
    return MediaSpec(Modality.AUDIO, max(1, grid) ** 2, {SPECTROGRAMS: shape}, settings)


def read_options(settings: dict[str, Any]) -> SoundSpec:
    """How sounds are prepared; what the file leaves out has the reference's default.

    Raises:
        CheckpointError: It asks for something that is not computed.
    """
    found = ConfigFile(FILE, settings)
    kind = found.text("feature_extractor_type")
    if kind not in {None, KIND}:
        raise found.error("feature_extractor_type", f"{kind!r} is not supported. Supported: {KIND}.")
    rate = found.whole("sampling_rate") or 48_000
    fft_size = found.whole("fft_window_size", least=2) or 1024
    highest_hz = float(found.whole("frequency_max") or 14_000)
    if fft_size % 2:
        raise found.error("fft_window_size", f"{fft_size} is odd. Supported: even sizes.")
    if highest_hz > rate / 2:
        raise found.error("frequency_max", f"{highest_hz:g} Hz is above half of sampling_rate. Correct the file.")
    return SoundSpec(
        rate=rate,
        window=rate * (found.whole("max_length_s") or 10),
        hop=found.whole("hop_length") or 480,
        fft_size=fft_size,
        mels=found.whole("feature_size") or 64,
        lowest_hz=float(found.whole("frequency_min", least=0) or 0),
        highest_hz=highest_hz,
        fusion=found.choice("truncation", {FUSION: True, CROP: False}, default=True),
        padding=found.choice("padding", dict(zip(PADDINGS, PADDINGS, strict=True)), "repeatpad"),
    )


def _edge(value: Any) -> int:
    return int(value if isinstance(value, int) else value[0])
