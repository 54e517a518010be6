"""Hot path. Calls a transformers module that puts texts and media into one space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.backends.torch_forward import CompiledModule
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

    Tensors: TypeAlias = "dict[str, Any]"

# What is read → the method that embeds it, and the part of the module that does so.
_METHODS = {
    Modality.TEXT: ("get_text_features", "text_model"),
    Modality.IMAGE: ("get_image_features", "vision_model"),
    Modality.AUDIO: ("get_audio_features", "audio_model"),
}


class FeaturesForward:
    """Vectors of one modality, before they are made unit length; one text, image or sound a row.

    Args:
        torch: The module.
        spec: The view of the checkpoint.
        module: The whole model; what this view does not need is taken out of it.
        compiled: Use `torch.compile`.
    """

    packed = False

    def __init__(self, torch: Any, spec: ModelSpec, module: Any, *, compiled: bool = False) -> None:
        method, _ = _METHODS[spec.reads]
        for modality, (_, part) in _METHODS.items():
            if modality is not spec.reads and hasattr(module, part):
                delattr(module, part)
        embed = getattr(module, method)
        self._embed = CompiledModule(torch, embed) if compiled else embed
        self._dtype = module.dtype
        self._torch, self._reads_audio = torch, spec.reads is Modality.AUDIO
        self._reads_text = spec.reads is Modality.TEXT
        self.inputs: tuple[str, ...] = ("input_ids", "segment_ids")
        if not self._reads_text:
            self.inputs = tuple(spec.media_spec(spec.reads).arrays)

    def __call__(self, arrays: Tensors) -> Any:
        """`[segments, dim]`."""
        if self._reads_text:
            real = (arrays["segment_ids"] > 0).long()
            made = self._embed(input_ids=arrays["input_ids"], attention_mask=real)
        else:
            media = {name: arrays[name].to(self._dtype) for name in self.inputs}
            made = self._embed(**media, **self._flags(len(media[self.inputs[0]])))
        return getattr(made, "pooler_output", made)  # a tensor before transformers 5

    def _flags(self, count: int) -> Tensors:
        """With fusion every sound is mixed as a long one, as the reference treats one that comes alone."""
        return {"is_longer": self._torch.ones((count, 1), dtype=self._torch.bool)} if self._reads_audio else {}
