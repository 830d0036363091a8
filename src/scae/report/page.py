"""Small pieces of HTML: escaped text, tables, embedded pictures, one style for light and dark."""

import base64
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from scae.errors import ScaeError

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --soft: #5c5c66; --line: #d9d9de;
  --paper: #ffffff; --panel: #f5f5f7; --accent: #332288; --warn: #8a1c14; --warn-bg: #fdeceb; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --soft: #a5a5b0; --line: #3a3a42;
  --paper: #17171a; --panel: #212126; --accent: #b3a8ff; --warn: #ffb4ab; --warn-bg: #3b1512; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; margin: 0; } h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
a { color: var(--accent); } nav { margin-bottom: 1.25rem; } nav a { margin-right: 1rem; }
.facts { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0; padding: 0; list-style: none; }
.facts li { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem;
  padding: .3rem .7rem; } .facts b { display: block; font-size: 1.05rem; }
.facts span { font-size: .8rem; color: var(--soft); }
.warnings { background: var(--warn-bg); color: var(--warn); border-left: 4px solid var(--warn);
  border-radius: .3rem; padding: .8rem 1rem; } .warnings h2 { margin: 0 0 .3rem; }
.warnings ul { margin: 0; padding-left: 1.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; } th { font-weight: 600; } thead th { border-bottom: 2px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.changed td, tr.changed th { font-weight: 700; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .88em; }
figure { margin: 1.5rem 0 2.25rem; }
.heard { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
figure img { display: block; width: 100%; height: auto; background: #ffffff;
  border: 1px solid var(--line); border-radius: .5rem; }
figure img.small { width: auto; max-width: 100%; max-height: 40rem; margin: 0 auto; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .5rem; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .6rem 0;
  padding: .4rem .8rem; } summary { cursor: pointer; font-weight: 600; }
@media print { body { background: #ffffff; color: #000000; } nav { display: none; } }
"""


@dataclass(frozen=True)
class Picture:
    """A PNG file with the title and caption that its figure stored in it."""

    name: str
    title: str
    caption: str
    data: bytes
    wide: bool


@dataclass(frozen=True)
class Cell:
    """A number in a table: aligned to the right."""

    text: str


Row = Sequence[str | Cell]


def text(value: object) -> str:
    """Any value, safe inside HTML."""
    return html.escape(str(value), quote=True)


def table(head: Row, rows: Iterable[Row], caption: str, changed: Sequence[bool] = ()) -> str:
    """A table whose first column names its rows; rows marked as changed are bold."""
    lines = ['<div class="scroll"><table>', f'<caption class="soft">{text(caption)}</caption>']
    columns = "".join(_cell(cell, "th", ' scope="col"') for cell in head)
    lines.append(f"<thead><tr>{columns}</tr></thead><tbody>")
    for i, (first, *rest) in enumerate(rows):
        kind = ' class="changed"' if i < len(changed) and changed[i] else ""
        cells = _cell(first, "th", ' scope="row"') + "".join(_cell(cell, "td") for cell in rest)
        lines.append(f"<tr{kind}>{cells}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _cell(cell: str | Cell, tag: str, extra: str = "") -> str:
    if isinstance(cell, Cell):
        return f'<{tag} class="number"{extra}>{text(cell.text)}</{tag}>'
    return f"<{tag}{extra}>{text(cell)}</{tag}>"


def read_picture(path: Path) -> Picture:
    """A PNG file and the text in its metadata."""
    try:
        with Image.open(path) as image:
            found = {str(k): str(v) for k, v in image.info.items() if isinstance(v, str)}
            wide = image.width > 1.15 * image.height
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise ScaeError(f"{path} cannot be read as a PNG image ({reason}).") from None
    title = found.get("Title") or path.stem.replace("-", " ").capitalize()
    return Picture(path.stem, title, found.get("Description", ""), data, wide)


def figure(picture: Picture) -> str:
    """A picture inside the page itself, with its caption; the alternative text says the same."""
    source = base64.b64encode(picture.data).decode()
    kind = "" if picture.wide else ' class="small"'
    return (
        f'<figure id="{text(picture.name)}">\n<h3 class="heard">{text(picture.title)}</h3>\n'
        f'<img{kind} alt="{text(f"{picture.title}. {picture.caption}".strip())}" '
        f'src="data:image/png;base64,{source}">\n'
        f"<figcaption>{text(picture.caption)}</figcaption>\n</figure>"
    )


def document(title: str, sections: Sequence[str]) -> str:
    """A whole page that asks nothing of the network; browsers are told to hold it to that."""
    body = "\n".join(section for section in sections if section)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
