"""What a run found: acceptance lines, tables, what was not run; as Markdown and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from measure import Spread, number

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Line:
    """One figure with its bar.

    Attributes:
        part: Number of the acceptance line, such as "1".
        what: The load and what is divided by what.
        value: The figure.
        bar: What it should reach.
        at_most: The figure should stay below the bar instead.
        unit: "x", "ms", "s", "MB", "%".
        note: What a reader should know.
    """

    part: str
    what: str
    value: Spread
    bar: float
    at_most: bool = False
    unit: str = "x"
    note: str = ""

    @property
    def verdict(self) -> str:
        """`ok` or `below`, by the median."""
        median = self.value.median
        return "ok" if (median <= self.bar if self.at_most else median >= self.bar) else "below"

    @property
    def bar_text(self) -> str:
        """The bar with its direction."""
        return f"{'≤' if self.at_most else '≥'} {number(self.bar)} {self.unit}"


@dataclass(frozen=True)
class Missing:
    """Something that could not be measured, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class Table:
    """Figures behind the lines."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@dataclass
class Report:
    """Grows while scenarios run; every line is printed when it is known."""

    facts: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    def line(self, line: Line) -> None:
        """Add and print a line."""
        self.lines.append(line)
        print(f"  [{line.part}] {line.what}: {line.value} {line.unit}, bar {line.bar_text}: {line.verdict}", flush=True)

    def miss(self, what: str, reason: object) -> None:
        """Say that something was not run."""
        self.missing.append(Missing(what, str(reason)))
        print(f"  {what}: not run: {reason}", flush=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        self.tables.append(Table(title, tuple(columns), rows))

    def as_json(self) -> dict[str, Any]:
        """Everything, for the results file."""
        written = asdict(self)
        for entry, line in zip(written["lines"], self.lines, strict=True):
            entry["verdict"] = line.verdict
        return written


def markdown(report: Report) -> str:
    """The report as a page's middle part."""
    parts = [_table(("", ""), list(report.facts.items()))]
    rows = [
        (
            line.part,
            line.what,
            f"{line.value} {line.unit}",
            line.bar_text,
            line.verdict + (f"; {line.note}" * bool(line.note)),
        )
        for line in report.lines
    ]
    parts.append("### Bars\n\nMedian (smallest-largest) of the rounds.\n")
    parts.append(_table(("part", "what", "figure", "bar", "verdict"), rows))
    for table in report.tables:
        parts.append(f"### {table.title}\n")
        parts.append(_table(table.columns, table.rows))
    if report.missing:
        parts.append("### Not run\n")
        parts.append("".join(f"- {missing.what}: {missing.reason}\n" for missing in report.missing))
    return "\n".join(parts)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines)
