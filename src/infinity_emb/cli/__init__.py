"""The command `infinity_emb`."""

from infinity_emb.cli.command import main

__all__ = ["main"]
