"""Write what is made of the recorded runs: `python results/pages.py`.

That is results/README.md, the table of the project's README and the lines of `scae presets`.
"""

import json
from pathlib import Path

from scae.reproduce.results_page import markdown_table, measured, results_page

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
MEASURED = HERE.parent / "src" / "scae" / "presets" / "measured.json"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
FRONT = ("preset", "metric, %", "paper", "ours", "seeds", "hours")


def front_page() -> str:
    """The project's README with the table in its place."""
    rows = [{name: row[name] for name in FRONT} for row in measured(HERE)]
    table = "\n".join(markdown_table(rows)).replace("](", "](results/")
    before, rest = README.read_text().split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def sentences() -> dict[str, str]:
    """What each preset reached: its first metric."""
    found: dict[str, str] = {}
    for row in measured(HERE):
        text = f"{row['metric, %']} {row['ours']} % (paper {row['paper']})"
        found.setdefault(row["preset"].strip("`"), text)
    return found


if __name__ == "__main__":
    (HERE / "README.md").write_text(results_page(HERE))
    README.write_text(front_page())
    MEASURED.write_text(json.dumps(sentences(), indent=2) + "\n")
