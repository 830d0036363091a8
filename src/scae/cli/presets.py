"""`scae presets`: every preset with its source in the paper and its measured row."""

from dataclasses import dataclass

from scae.cli.options import parse
from scae.cli.output import show


@dataclass(frozen=True)
class Presets:
    """List every preset with its source (table or figure of the paper) and measured result."""

    json: bool = False
    """Print JSON."""


HEADINGS = {
    "recommended": "Recommended: the paper's architecture, trained the way we found best",
    "literal": "Literal: tables 3 and 4 as printed",
    "release": "Release: the authors' scripts",
    "ablation": "Table 2: the full model, no loss but the paper's, and its ablations",
}


def command(arguments: list[str]) -> None:
    """Print the table."""
    from scae.presets import describe, names

    options = parse(Presets, arguments, "presets")
    rows = [describe(name) for name in names()]
    lines: list[str] = []
    for kind, heading in HEADINGS.items():
        lines += ["", heading] if lines else [heading]
        for row in (row for row in rows if row.kind == kind):
            measured = row.measured.sentence if row.measured else "not measured"
            lines.append(f"  {row.name}")
            lines.append(f"      {row.summary}")
            lines.append(f"      from {row.source}; {measured}")
    show(rows, "\n".join(lines), options.json)
