"""Writes docs/tutorial.ipynb from docs/tutorial.md: python docs/notebook.py

Blocks of Python become code cells, the text between them Markdown cells.
"""

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent


def notebook(text: str) -> dict[str, Any]:
    """A notebook of format 4 from a page of Markdown."""
    cells = []
    for i, part in enumerate(re.split(r"```python\n(.*?)```\n", text, flags=re.DOTALL)):
        cell: dict[str, Any] = {"id": f"cell-{i}", "cell_type": "markdown", "metadata": {}}
        if i % 2:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        if part.strip():
            cells.append({**cell, "source": part.strip().splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def main() -> None:
    book = notebook((DOCS / "tutorial.md").read_text())
    (DOCS / "tutorial.ipynb").write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
