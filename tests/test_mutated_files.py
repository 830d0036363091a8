"""Damaged files of every format; `python tests/mutate_files.py --files 100000` tries more."""

from mutate_files import run


def test_damaged_files_are_refused_in_one_sentence_or_read_right() -> None:
    table, problems = run(660)
    assert problems == []
    assert all(row["refused"] > 10 for row in table.values())
    assert sum(row["read"] for row in table.values()) > 20
