"""Tables of the paper: the plan of cells, reuse and failure, and the four formats."""

import csv
import html.parser
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_ind_from_stats

from fake_cells import FakeCells
from scae import paper_values
from scae.config import ConstellationExperiment, ImageExperiment
from scae.errors import ScaeError
from scae.paper_values import PaperValue
from scae.presets import preset
from scae.presets.ablations import ABLATIONS
from scae.reproduce import reproduce, runner
from scae.reproduce.budgets import Length, experiment
from scae.reproduce.code_version import hash_sources
from scae.reproduce.data_at_hand import DataFinder
from scae.reproduce.plan import cells_of
from scae.reproduce.tables import Entry, make_table
from scae.reproduce.text_formats import escape_latex


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither SCAE_DATA nor an earlier download: cells fall back to the embedded digits."""
    monkeypatch.delenv("SCAE_DATA", raising=False)
    monkeypatch.setattr("scae.data.catalog.cache_folder", lambda: tmp_path / "no-cache")


@pytest.fixture
def finder() -> DataFinder:
    return DataFinder(None, download=False)


@pytest.fixture
def mnist_here(tmp_path: Path) -> Path:
    """Files under MNIST's names: planning looks at them without reading images."""
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    for stem in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (folder / f"{stem}-ubyte.gz").write_bytes(stem.encode())
    return folder.parent


def smoke(target: Any, out: Path, launch: FakeCells, **options: Any) -> Any:
    return reproduce(target, budget="smoke", out=out, launch=launch, **options)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_plan_counts(finder: DataFinder) -> None:
    smoke_length, paper = Length("smoke"), Length("paper")
    assert len(cells_of("table1", smoke_length, None, finder)) == 3
    cells = cells_of("table2", smoke_length, None, finder)
    assert len(cells) == 26 and len({cell.row for cell in cells}) == 13
    assert len({cell.key for cell in cells}) == 26
    assert len(cells_of("constellations", smoke_length, 4, finder)) == 12
    assert len(cells_of("table1", paper, None, finder)) == 3 * 5
    assert len(cells_of("table2", paper, None, finder)) == 26 * 10


def test_important_groups_come_first(finder: DataFinder) -> None:
    rows = [cell.row for cell in cells_of("table2", Length("smoke"), 1, finder)][::2]
    groups = ["" if row == "full" else ABLATIONS[row].group for row in rows]
    assert groups == ["", *"aaa", *"dd", "e", *"bbb", *"cc", "f"]


def test_only_keeps_groups_and_rows(finder: DataFinder) -> None:
    cells = cells_of("table2", Length("smoke"), 1, finder, only=("full", "d"))
    assert {cell.row for cell in cells} == {"full", "linear-part-encoder", "conv-part-encoder"}
    with pytest.raises(ScaeError, match="'z' is neither a group"):
        cells_of("table2", Length("smoke"), 1, finder, only=("z",))


def test_paper_budget_is_the_literal_preset() -> None:
    config = experiment("table1", "svhn", "full", Length("paper"), seed=3)
    assert config.name == "svhn-paper" and config.training.seed == 3
    assert config.training.steps == 300_000 and config.optimizer.name == "rmsprop"
    assert isinstance(config, ImageExperiment) and config.data.split == "train+test"
    ablated = experiment("table2", "mnist", "mlp-object-encoder", Length("paper"), seed=0)
    assert isinstance(ablated, ImageExperiment)
    assert ablated.model.object_encoder == "mlp" and ablated.data.split == "train"


def test_steps_override_shortens_the_schedule() -> None:
    config = experiment("table2", "mnist", "full", Length("cpu", 3000), seed=0)
    assert config.training.steps == 3000 and config.training.batch == 32
    assert config.optimizer.warmup <= 300
    assert config.loss.posterior_ramp == 0.7 and config.loss.posterior_end == 1.0
    plain = experiment("table2", "mnist", "full", Length("cpu"), seed=0)
    assert plain.loss == preset("mnist-joint").loss
    svhn = experiment("table1", "svhn", "full", Length("cpu", 3000), seed=0)
    assert svhn.loss == preset("svhn").loss  # nothing is annealed there
    scenes = experiment("constellations", "constellations", "full", Length("cpu", 3000), seed=0)
    assert scenes.loss == preset("constellation").loss  # grows, but is never relaxed
    with pytest.raises(ScaeError, match="--steps is 0"):
        Length("cpu", 0)


def test_constellation_rows_differ_in_one_thing() -> None:
    length = Length("cpu")
    full, no_loss, baseline = (
        experiment("constellations", "constellations", row, length, 0)
        for row in ("full", "no-two-parts", "baseline")
    )
    assert isinstance(full, ConstellationExperiment)
    assert full.loss.two_parts > 0 and no_loss.loss == replace(full.loss, two_parts=0.0)
    assert isinstance(baseline, ConstellationExperiment)
    assert baseline.model == replace(full.model, decoder="baseline")


def test_real_data_and_style(mnist_here: Path) -> None:
    """With MNIST but no affNIST, the third column is affNIST-style and called so."""
    finder = DataFinder(mnist_here, download=False)
    cells = cells_of("table2", Length("smoke"), 1, finder, only=("full",))
    assert [cell.evaluation.transfer for cell in cells] == [None, "affnist-style"]
    assert all(cell.stand_in is None and len(cell.data) == 64 for cell in cells)
    key = cells[0].key
    (mnist_here / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(b"other labels")
    again = cells_of("table2", Length("smoke"), 1, DataFinder(mnist_here, False), only=("full",))
    assert again[0].key != key


def test_missing_data_fails_the_cell_and_not_the_table(mnist_here: Path, tmp_path: Path) -> None:
    fake = FakeCells()
    done = reproduce("table1", budget="cpu", out=tmp_path, data_dir=mnist_here, launch=fake)
    assert done.finished == 1 and done.failed == ("cifar10-full-seed0", "svhn-full-seed0")
    text = (tmp_path / "table1.md").read_text()
    assert "Failed: svhn-full-seed0 (Data 'svhn'" in text


def test_finished_cells_are_reused_and_failed_ones_tried_again(tmp_path: Path) -> None:
    first, rows = FakeCells(bad=("mnist40-no-noise",)), ("full", "b")
    done = smoke("table2", tmp_path, first, only=rows)
    assert (done.cells, done.finished, done.reused) == (8, 7, 0)
    assert done.failed == ("mnist40-no-noise-seed0",)
    failed = [row for row in rows_of(tmp_path / "table2.csv") if row["failed"] == "1"]
    assert [row["column"] for row in failed] == ["40×40 MNIST", "affNIST"]
    assert "exit code 1: out of memory" in (tmp_path / "table2.md").read_text()
    second = FakeCells()
    done = smoke("table2", tmp_path, second, only=rows)
    assert (done.finished, done.reused, done.failed) == (8, 7, ())
    assert len(second.ran) == 1 and second.ran[0].startswith("mnist40-no-noise-seed0")
    assert "Failed" not in (tmp_path / "table2.md").read_text()


def test_all_tables_are_made_of_their_own_cells(tmp_path: Path) -> None:
    """MNIST's full model is guided in table 1 and, like its ablations, is not in table 2."""
    fake = FakeCells()
    done = smoke("all", tmp_path, fake)
    assert done.cells == len(fake.ran) == len(set(fake.ran)) == 3 + 26 + 3
    assert len(done.files) == 12 and all(path.is_file() for path in done.files)


def test_interrupted_it_continues(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        smoke("table2", tmp_path, FakeCells(interrupt_after=4), only=("d", "e"))
    # Written as far as it came: two rows, the third not run.
    written = rows_of(tmp_path / "table2.csv")
    assert sum(row["finished"] == "1" for row in written) == 6
    assert sum(row["not_run"] == "1" for row in written) == 3 * 13 - 6
    rest = FakeCells()
    done = smoke("table2", tmp_path, rest, only=("d", "e"))
    assert len(rest.ran) == 2 and done.reused == 4
    # What one call trained, the table of another shows.
    smoke("table2", tmp_path, FakeCells(), only=("full",))
    assert sum(row["finished"] == "1" for row in rows_of(tmp_path / "table2.csv")) == 12


def test_a_cell_asked_to_stop_has_not_failed(tmp_path: Path) -> None:
    done = smoke("constellations", tmp_path, lambda folder: 143)  # type: ignore[arg-type]
    assert done.finished == 0 and done.failed == ()


def test_other_code_is_trained_again_unless_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke("constellations", tmp_path, FakeCells())
    for module in ("plan", "runner"):
        monkeypatch.setattr(f"scae.reproduce.{module}.code_version", lambda: "f" * 64)
    kept = FakeCells()
    assert smoke("constellations", tmp_path, kept, any_code=True).reused == 3 and not kept.ran
    assert "earlier version of the code: 3 of 3" in (tmp_path / "constellations.md").read_text()
    again = FakeCells()
    smoke("constellations", tmp_path, again)
    assert len(again.ran) == 3
    assert "earlier version" not in (tmp_path / "constellations.md").read_text()


def test_code_version_ignores_what_cannot_change_numbers(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "model.py").write_text("a = 1")
    before = hash_sources(tmp_path, "1")
    (tmp_path / "cli" / "train.py").write_text("b = 1")
    assert hash_sources(tmp_path, "1") == before
    (tmp_path / "model.py").write_text("a = 2")
    assert hash_sources(tmp_path, "1") != before


def test_damaged_result_is_not_finished(tmp_path: Path, finder: DataFinder) -> None:
    cell = cells_of("constellations", Length("smoke"), 1, finder)[0]
    folder = cell.folder(tmp_path)
    folder.mkdir(parents=True)
    for text in ("{", "[]", '{"key": "other"}'):
        (folder / "result.json").write_text(text)
        assert runner.existing(cell, tmp_path).status == "not run"


def test_printed_commands_train_nothing(tmp_path: Path) -> None:
    fake = FakeCells()
    done = smoke("table1", tmp_path, fake, print_commands=True)
    assert not fake.ran and len(done.commands) == 3
    folder = Path(done.commands[0].split()[-1])
    assert "-m scae.reproduce.cell" in done.commands[0]
    assert json.loads((folder / "cell.json").read_text())["experiment"]["training"]["steps"] == 5


def test_smoke_warns_and_names_the_stand_in(tmp_path: Path) -> None:
    smoke("table2", tmp_path, FakeCells(), only=("full",))
    for suffix in ("md", "tex", "html"):
        text = (tmp_path / f"table2.{suffix}").read_text()
        assert "SMOKE RUN, NOT A RESULT" in text and "Test CPU" in text
        assert "MNIST (ours: embedded digits)" in text
    assert {row["budget"] for row in rows_of(tmp_path / "table2.csv")} == {"smoke"}
    data = {row["data"] for row in rows_of(tmp_path / "table2.csv")}
    assert data == {"digits", "digits, affine"}


def test_numbers_with_seeds(tmp_path: Path, mnist_here: Path) -> None:
    """0.90, 0.92, 0.94 against 95.3 (4.65) over 10 runs, and against scipy's own Welch test."""
    smoke("table2", tmp_path, FakeCells(), seeds=3, data_dir=mnist_here, only=("full", "e"))
    rows = rows_of(tmp_path / "table2.csv")
    assert len(rows) == 13 * 3
    full = rows[0]
    assert (full["ours_mean"], full["ours_sd"], full["ours_n"]) == ("92.000", "2.000", "3")
    assert full["difference"] == "-3.300" and full["ours_posterior_mean"] == "62.000"
    expected = ttest_ind_from_stats(92.0, 2.0, 3, 95.3, 4.65, 10, equal_var=False).pvalue
    assert float(full["p_value"]) == pytest.approx(expected, rel=1e-3)
    assert full["differs_at_98_percent"] == "no"
    style = rows[2]
    assert style["column"] == "affNIST" and style["data"] == "affNIST-style"
    assert style["ours_mean"] == "82.000" and style["p_value"] == "n/a"
    assert next(row for row in rows if row["row"] == "no noise in any caps")["not_run"] == "3"
    mlp = next(row for row in rows if row["row"].startswith("MLP"))
    assert mlp["differs_at_98_percent"] == "yes"


def test_one_seed_has_no_test(tmp_path: Path) -> None:
    smoke("constellations", tmp_path, FakeCells())
    text = (tmp_path / "constellations.md").read_text()
    assert "| CCAE | 2.8, best; consistently below 4 | 4.0 [s0](cells/" in text
    assert "+1.2, n/a |" in text and "**4.0**" not in text


def test_bold_face_follows_the_paper(finder: DataFinder) -> None:
    cells = cells_of("constellations", Length("smoke"), 2, finder)
    errors = {"full": (0.03, 0.031), "no-two-parts": (0.0305, 0.0315), "baseline": (0.26, 0.261)}
    outcomes = [
        runner.Outcome(
            cell,
            Path("x"),
            "finished",
            {"own": {"segmentation_error": errors[cell.row][cell.seed]}},
        )
        for cell in cells
    ]
    assert make_table("constellations", outcomes).best(0) == {0, 1}
    assert make_table("constellations", outcomes[:3]).best(0) == set()


def test_every_number_links_to_its_run(tmp_path: Path) -> None:
    smoke("table1", tmp_path, FakeCells(), seeds=2)
    links: list[str] = []

    class Links(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(str(value) for name, value in attrs if name == "href")

    page = (tmp_path / "table1.html").read_text()
    Links().feed(page)
    assert len(links) == 3 * 3 * 2  # k-means, LIN-MATCH and LIN-PRED on three data sets
    assert all((tmp_path / link).is_dir() for link in links)
    assert "http://" not in page and "https://" not in page
    markdown = (tmp_path / "table1.md").read_text()
    assert all(f"({link})" in markdown for link in links)


def test_latex_is_balanced_and_escaped(tmp_path: Path) -> None:
    smoke("table1", tmp_path, FakeCells(), seeds=2)
    text = (tmp_path / "table1.tex").read_text()
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + 6 + 2 and all(row.count("&") == 10 for row in rows)
    assert text.count("{") == text.count("}") and r"98\%" in text
    assert escape_latex("a_b & 5% − {x}") == r"a\_b \& 5\% $-$ \{x\}"


def test_paper_values_as_printed() -> None:
    assert set(paper_values.TABLE2) == {"full", *ABLATIONS} and len(paper_values.TABLE2) == 13
    cells = paper_values.TABLE2
    assert cells["full"]["affnist"] == PaperValue(92.2, 0.59, 10, sd_digits=2)
    assert cells["no-posterior-sparsity"]["mnist40"].text == "95.0 (7.20)"
    assert cells["no-noise"]["mnist40"].text == "78.5 (22.69)"
    assert cells["conv-part-encoder"]["mnist40"].text == "97.8 (0.98)"
    assert cells["mlp-object-encoder"]["affnist"].text == "25.29 (3.69)"
    assert cells["no-special-features"]["mnist"].text == "90.7 (2.25)"
    assert paper_values.TABLE1_LIN_MATCH["svhn"].text == "55.33 (3.4)"
    assert paper_values.TABLE1_LIN_PRED["mnist"].text == "99.0 (0.07)"
    assert paper_values.TABLE1_LIN_PRED["cifar10"].text == "33.48 (0.3)"
    assert {v.n for v in paper_values.TABLE1_LIN_MATCH.values()} == {5}
    others = {method.name: method.values for method in paper_values.TABLE1_OTHERS}
    assert list(others) == ["KMEANS", "AE", "GAN", "IMSAT", "IIC", "ADC"]
    assert others["KMEANS"]["mnist"].text == "53.49" and "svhn" not in others["IIC"]
    assert others["IIC"]["cifar10"].text == "57.6 (5.0)"


def test_paper_values_match_the_text_of_the_paper() -> None:
    """Sum of each column of table 2, added up by hand from the printed table."""
    sums = {"mnist": 1131.8, "mnist40": 1062.8, "affnist": 906.19}
    for column in ("mnist", "mnist40", "affnist"):
        total = sum(row[column].mean for row in paper_values.TABLE2.values())
        assert total == pytest.approx(sums[column], abs=1e-6), column


def test_bad_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScaeError, match="--seeds is 0"):
        smoke("table1", tmp_path, FakeCells(), seeds=0)
    with pytest.raises(ScaeError, match="--jobs is 0"):
        smoke("table1", tmp_path, FakeCells(), jobs=0)


def test_empty_entry_is_a_dash() -> None:
    assert Entry(None).ours_text == "–" and Entry(None).difference_text == "–"


@pytest.mark.slow
def test_smoke_budget_end_to_end(tmp_path: Path) -> None:
    """Real processes: two cells train, are scored and end in a table; the second time reused."""
    first = reproduce("constellations", budget="smoke", out=tmp_path, jobs=2, device="cpu")
    assert first.finished == 3 and not first.failed
    images = reproduce("table2", budget="smoke", out=tmp_path, only=("full",), device="cpu")
    assert images.finished == 2 and not images.failed
    again = reproduce("constellations", budget="smoke", out=tmp_path, device="cpu")
    assert again.reused == 3
