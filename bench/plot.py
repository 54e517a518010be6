"""Bars as SVG, written by hand: no plotting library is needed."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from measure import Spread, number

if TYPE_CHECKING:
    from collections.abc import Sequence

_LABEL, _CHART, _ROW, _TOP = 610, 420, 26, 46


@dataclass(frozen=True)
class Bar:
    """One bar: its median, a whisker from smallest to largest, and where it should reach."""

    label: str
    value: Spread
    mark: float | None = None
    colour: str = "#3b6fb6"


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """A chart of horizontal bars with a common scale from 0."""
    most = max(max(row.value.high, row.mark or 0) for row in rows) * 1.05 or 1
    height = _TOP + _ROW * len(rows) + 14
    width = _LABEL + _CHART + 90
    pieces = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            'font-size="12">'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(title)} ({escape(unit)})</text>',
    ]
    for index, row in enumerate(rows):
        pieces += _bar(row, _TOP + index * _ROW, _CHART / most)
    return "\n".join([*pieces, "</svg>\n"])


def _bar(row: Bar, top: int, scale: float) -> list[str]:
    middle = top + _ROW / 2 - 3
    low, median, high = (_LABEL + value * scale for value in (row.value.low, row.value.median, row.value.high))
    pieces = [
        f'<text x="{_LABEL - 8}" y="{middle + 4}" text-anchor="end">{escape(row.label)}</text>',
        f'<rect x="{_LABEL}" y="{top}" width="{median - _LABEL:.1f}" height="{_ROW - 8}" fill="{row.colour}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="black" stroke-width="1.5"/>',
        f'<text x="{high + 6:.1f}" y="{middle + 4}">{number(row.value.median)}</text>',
    ]
    if row.mark is not None:
        x = _LABEL + row.mark * scale
        pieces.append(f'<path d="M{x:.1f} {top - 3}V{top + _ROW - 5}" stroke="#c0392b" stroke-width="2.5"/>')
    return pieces
