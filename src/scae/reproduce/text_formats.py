"""Tables as Markdown, CSV and LaTeX."""

import csv
import io
from pathlib import Path

from scae.evaluation.significance import LEVEL
from scae.reproduce.summary import Summary
from scae.reproduce.tables import Column, Entry, Table, run_links, sample

PROTOCOL = (
    "Paper and ours are means (standard deviations) over seeds. Differences are ours minus the "
    f"paper's, with a two-sided Welch t-test at the {LEVEL:.0%} level; n/a below two seeds. Bold: "
    "the best of ours and those the same test cannot tell from it."
)
CSV_FIELDS = (
    *("table", "group", "row", "column", "data", "paper_mean", "paper_sd", "paper_n"),
    *("ours_mean", "ours_sd", "ours_n", "ours_posterior_mean", "difference", "p_value"),
    *("differs_at_98_percent", "finished", "failed", "not_run", "values", "runs", "budget"),
)
_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "<": "$<$",
    ">": "$>$",
}


def markdown(table: Table, summary: Summary, out: Path) -> str:
    """A Markdown page whose numbers link to their runs."""
    lines = [f"# {table.title}", ""]
    for warning in summary.warnings:
        lines += [f"> **Warning.** {_escape_markdown(warning)}", ">"]
    if summary.warnings:
        lines[-1] = ""
    lines += [f"- {name}: {_escape_markdown(value)}" for name, value in summary.facts]
    lines += ["", f"{table.metric[0].upper()}{table.metric[1:]}. {PROTOCOL}", ""]
    head = ["", "method"]
    for column in table.columns:
        head += [f"{column.name}, paper", f"{column.ours}, ours", "difference"]
    lines += [_markdown_row(head), "|" + "---|" * len(head)]
    bold = [table.best(i) for i in range(len(table.columns))]
    for number, row in enumerate(table.rows):
        cells = [f"{row.group})" if row.group else "", row.name]
        for i, entry in enumerate(row.entries):
            ours = f"**{entry.ours_text}**" if number in bold[i] else entry.ours_text
            links = " ".join(f"[s{seed}]({path})" for seed, path, _ in run_links(entry, out))
            cells += [_paper(entry), f"{ours} {links}".strip(), entry.difference_text]
        lines.append(_markdown_row(cells))
    return "\n".join(lines) + "\n"


def comma_separated(table: Table, out: Path, budget: str) -> str:
    """One line per entry, with everything a spreadsheet or script may want."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in table.rows:
        for column, entry in zip(table.columns, row.entries, strict=True):
            place = {"table": table.target, "group": row.group, "row": row.name}
            writer.writerow({**place, "budget": budget, **_csv_entry(column, entry, out)})
    return text.getvalue()


def latex(table: Table, summary: Summary) -> str:
    """A booktabs table; the facts and warnings are comments and part of the caption."""
    lines = [f"% {name}: {value}" for name, value in summary.facts]
    lines += [r"\begin{table}", r"\centering"]
    caption = " ".join([f"{table.title}; {table.metric}.", PROTOCOL, *summary.warnings])
    lines += [rf"\caption{{{escape_latex(caption)}}}", rf"\label{{tab:{table.target}}}"]
    lines += [r"\begin{tabular}{@{}ll" + "lll" * len(table.columns) + r"@{}}", r"\toprule"]
    head = ["", "Method"]
    for column in table.columns:
        head += [f"{column.name}, paper", f"{column.ours}, ours", "difference"]
    lines += [_latex_row(list(map(escape_latex, head))), r"\midrule"]
    bold = [table.best(i) for i in range(len(table.columns))]
    before = table.rows[0].group if table.rows else ""
    for number, row in enumerate(table.rows):
        if row.group != before:
            lines.append(r"\midrule")
        before = row.group
        cells = [f"{row.group})" if row.group else "", escape_latex(row.name)]
        for i, entry in enumerate(row.entries):
            ours = escape_latex(entry.ours_text)
            ours = rf"\textbf{{{ours}}}" if number in bold[i] else ours
            cells += [escape_latex(_paper(entry)), ours, escape_latex(entry.difference_text)]
        lines.append(_latex_row(cells))
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Text as LaTeX sets it."""
    return "".join(_LATEX.get(character, character) for character in text)


def _csv_entry(column: Column, entry: Entry, out: Path) -> dict[str, object]:
    ours, printed, found = entry.ours, entry.paper, entry.comparison
    posterior = sample(entry.posterior)
    statuses = [outcome.status for outcome in entry.outcomes]
    return {
        "column": column.name,
        "data": column.ours if entry.outcomes else "",
        "paper_mean": "" if printed is None else printed.mean,
        "paper_sd": "" if printed is None or printed.sd is None else printed.sd,
        "paper_n": "" if printed is None or printed.n is None else printed.n,
        "ours_mean": "" if ours is None else f"{ours.mean:.3f}",
        "ours_sd": "" if ours is None or ours.n < 2 else f"{ours.sd:.3f}",
        "ours_n": "" if ours is None else ours.n,
        "ours_posterior_mean": "" if posterior is None else f"{posterior.mean:.3f}",
        "difference": "" if found is None else f"{found.difference:.3f}",
        "p_value": "n/a" if found is None or found.p_value is None else f"{found.p_value:.4g}",
        "differs_at_98_percent": _yes_no(None if found is None else found.significant),
        "finished": statuses.count("finished"),
        "failed": statuses.count("failed"),
        "not_run": statuses.count("not run"),
        "values": " ".join(f"{value:.3f}" for value in entry.values),
        "runs": " ".join(path for _, path, _ in run_links(entry, out)),
    }


def _yes_no(value: bool | None) -> str:
    return "n/a" if value is None else "yes" if value else "no"


def _paper(entry: Entry) -> str:
    return "–" if entry.paper is None else entry.paper.text


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _escape_markdown(text: str) -> str:
    return text.replace("<", "&lt;").replace("\n", " ")


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
