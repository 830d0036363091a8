"""A table as a self-contained HTML page in the style of the run reports."""

from pathlib import Path

from scae.report.page import document, text
from scae.reproduce.summary import Summary
from scae.reproduce.tables import Entry, Table, run_links
from scae.reproduce.text_formats import PROTOCOL


def html_page(table: Table, summary: Summary, out: Path) -> str:
    """The page; numbers link to the folders of their runs, relative to the page."""
    warnings = ""
    if summary.warnings:
        items = "".join(f"<li>{text(warning)}</li>" for warning in summary.warnings)
        warnings = f'<div class="warnings" role="alert"><h2>Warning</h2><ul>{items}</ul></div>'
    facts = "".join(
        f"<tr><th scope='row'>{text(name)}</th><td>{text(value)}</td></tr>"
        for name, value in summary.facts
    )
    return document(
        table.title,
        [
            f"<h1>{text(table.title)}</h1>",
            f'<p class="soft">{text(table.metric)}</p>',
            warnings,
            f'<div class="scroll"><table><tbody>{facts}</tbody></table></div>',
            "<h2>Paper and ours</h2>",
            _body(table, out),
            f'<p class="soft">{text(PROTOCOL)}</p>',
        ],
    )


def _body(table: Table, out: Path) -> str:
    lines = ['<div class="scroll"><table>']
    top = "".join(f'<th colspan="3" scope="colgroup">{text(c.name)}</th>' for c in table.columns)
    below = "".join(
        f'<th scope="col">paper</th><th scope="col">ours, on {text(c.ours)}</th>'
        '<th scope="col">difference</th>'
        for c in table.columns
    )
    lines.append(f'<thead><tr><td colspan="2"></td>{top}</tr>')
    lines.append(f'<tr><td></td><th scope="col">method</th>{below}</tr></thead><tbody>')
    bold = [table.best(i) for i in range(len(table.columns))]
    for number, row in enumerate(table.rows):
        group = f"{row.group})" if row.group else ""
        cells = "".join(
            _entry(entry, number in bold[i], out) for i, entry in enumerate(row.entries)
        )
        lines.append(f'<tr><td>{group}</td><th scope="row">{text(row.name)}</th>{cells}</tr>')
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _entry(entry: Entry, bold: bool, out: Path) -> str:
    paper = "–" if entry.paper is None else entry.paper.text
    ours = f"<b>{text(entry.ours_text)}</b>" if bold else text(entry.ours_text)
    links = " ".join(
        f'<a href="{text(path)}" title="seed {seed}, {text(status)}">s{seed}</a>'
        for seed, path, status in run_links(entry, out)
    )
    difference = text(entry.difference_text)
    return f"<td>{text(paper)}</td><td>{ours} {links}</td><td>{difference}</td>"
