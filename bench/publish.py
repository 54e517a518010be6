"""Put the newest results into docs/performance.md, between its two marks, and the plots beside it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
IMAGES = HERE.parent / "docs" / "images"
BEGIN, END = "<!-- results begin -->", "<!-- results end -->"


def main() -> int:
    """Replace the middle of the page."""
    folders = sorted(path for path in (HERE / "results").glob("*") if (path / "report.md").exists())
    if not folders:
        print("There are no results yet; run `make bench` first.")
        return 1
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    middle = f"Run of {folders[-1].name}.\n\n{(folders[-1] / 'report.md').read_text()}"
    IMAGES.mkdir(exist_ok=True)
    for plot in sorted(folders[-1].glob("*.svg")):
        shutil.copy(plot, IMAGES / f"performance-{plot.name}")
        middle += f"\n![{plot.stem}](images/performance-{plot.name})\n"
    PAGE.write_text(f"{before}{BEGIN}\n\n{middle}\n{END}{after}")
    print(f"{PAGE} now shows {folders[-1].name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
