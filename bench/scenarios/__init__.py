"""The scenarios of a run, in order; each adds its lines to the report."""

from __future__ import annotations

from scenarios import bulk_and_interactive, caches, libraries, limits, long_text, overhead, scaling, served, start

ALL = {
    "machine": limits.run,
    "served": served.run,
    "libraries": libraries.run,
    "mixed": bulk_and_interactive.run,
    "overhead": overhead.run,
    "scaling": scaling.run,
    "start": start.run,
    "caches": caches.run,
    "long": long_text.run,
}

QUICK = ("machine", "served", "overhead", "start", "long")
"""What a quick run does."""
