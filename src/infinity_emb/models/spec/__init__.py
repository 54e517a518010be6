"""What a checkpoint says of itself: read its files, check them, give plain values."""

from infinity_emb.models.spec.model import ModelSpec
from infinity_emb.models.spec.reader import read_spec

__all__ = ["ModelSpec", "read_spec"]
