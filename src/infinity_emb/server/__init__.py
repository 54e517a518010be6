"""HTTP: a small ASGI application, one file a dialect, each of which only turns wire into values and back."""

from infinity_emb.server.factory import create_server
from infinity_emb.server.launch import run

__all__ = ["create_server", "run"]
