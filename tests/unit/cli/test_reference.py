"""docs/cli.md is what the declarations say."""

from __future__ import annotations

from pathlib import Path

from infinity_emb.cli.reference import markdown
from infinity_emb.config.options import OPTIONS, RETIRED_VARIABLES

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run: python -m infinity_emb.cli.reference > docs/cli.md"


def test_every_option_and_variable_is_on_the_page():
    page = markdown()
    assert all(f"`--{option.flag}" in page and f"`{option.variable}`" in page for option in OPTIONS)
    assert all(name in page for name in RETIRED_VARIABLES)
