"""`scae presets`: every preset with its place in the paper and its measured result."""

from dataclasses import dataclass

from scae.cli.options import parse
from scae.cli.output import show

HEADINGS = {
    "recommended": "Recommended: the paper's architecture, trained by the recipe",
    "paper": "Paper: tables 3 and 4 as printed",
    "release": "Release: the authors' scripts",
    "ablation": "Table 2: the recommended model with one thing changed",
}


@dataclass(frozen=True)
class Presets:
    """List every preset with its table or figure of the paper and its measured result."""

    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Print the table."""
    from scae.presets import describe, names

    options = parse(Presets, arguments, "presets")
    rows = [describe(name) for name in names()]
    lines: list[str] = []
    for kind, heading in HEADINGS.items():
        lines += ["", heading] if lines else [heading]
        for row in (row for row in rows if row.kind == kind):
            lines.append(f"  {row.name}: {row.summary} ({row.reference})")
            if row.measured:
                lines.append(f"      {row.measured}")
    show(rows, "\n".join(lines), options.json)
