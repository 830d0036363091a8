"""The command line as a user meets it: help, a training to its end, bad input, exit codes."""

import contextlib
import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from scae.cli import COMMANDS, main
from scae.cli.train import read_options
from scae.config import ConstellationExperiment, ImageExperiment
from scae.presets import names

SMALL = ["--model.parts", "4", "--model.cnn-channels", "8", "8", "8", "8", "--training.batch", "16"]


def answer(*arguments: str) -> str:
    """Run a command that has to succeed; returns what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([str(argument) for argument in arguments]) == 0
    return out.getvalue()


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that has to fail with exit code 2 and one sentence; returns the sentence."""
    capsys.readouterr()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("scae: ") and err.count("\n") == 1, err
    return err


def test_help_names_every_command_without_torch() -> None:
    code = "import sys, scae.cli; scae.cli.main(['--help']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(f"  scae {name} {example}".rstrip() in done.stdout and text in done.stdout
               for name, (example, text) in COMMANDS.items())  # fmt: skip
    assert len(done.stdout.splitlines()) <= 24 and max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    assert f"scae {command}" in answer(command, "--help")


def test_train_help_gives_meaning_and_paper_value() -> None:
    text = " ".join(answer("train", "mnist", "--help").replace("│", " ").split())
    assert "Part capsules M, each with one template. Paper: 24" in text
    assert "--optimizer.lr" in text and "Learning rate. Paper: 1e-5" in text


def test_options_reach_the_experiment() -> None:
    given = "--model.parts 32 --optimizer.lr 1e-4 --model.cnn-strides 1 1 2 2 --data.canvas 40"
    switches = "--model.no-deformations --model.noise.no-part --data files --out x --resume"
    options = read_options("mnist", f"{given} {switches}".split())
    experiment = options.experiment
    assert isinstance(experiment, ImageExperiment)
    assert experiment.model.parts == 32 and experiment.optimizer.lr == 1e-4
    assert experiment.model.cnn_strides == (1, 1, 2, 2) and experiment.data.canvas == 40
    assert not experiment.model.deformations and not experiment.model.noise.part
    assert experiment.data.name == "mnist" and options.data_dir == Path("files")
    points = read_options("constellation", ["--data.noise", "0.1"]).experiment
    assert isinstance(points, ConstellationExperiment) and points.data.noise == 0.1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("trian", "did you mean 'train'?"),
        ("train mnst", "no preset 'mnst'; did you mean 'mnist'?"),
        ("train --model.parts 3", "needs a preset"),
        ("train images --clusters 3", "needs --data FOLDER"),
        ("train images --data photos", "needs --clusters N"),
        ("train digits --devices 2", "needs --out"),
        ("train constellation --data nothing.csv", "nothing.csv does not exist"),
        ("evaluate no-such-model", "There is no model 'no-such-model'"),
        ("evaluate mnits", "did you mean 'mnist'?"),
        ("evaluate .", "holds no weights.safetensors"),
        ("evaluate broken.safetensors", "not a readable safetensors file"),
        ("data list --data nowhere", "nowhere does not exist"),
        ("data download digits", "nothing to download"),
        ("reproduce table2 --only no-nois", "no row 'no-nois'; did you mean 'no-noise'?"),
        ("reproduce table2 --steps 5 6 7", "one number or one for each"),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.safetensors").write_bytes(b"not a safetensors file")
    assert sentence in complaint(capsys, *arguments.split())


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("train mnist --model.prts 32", "--model.parts"),
        ("train mnist --model.parts many", "many"),
        ("train digits --training.steps 0", "greater than or equal to 1"),
        ("evaluate x --sed 1", "--seed"),
        ("evaluate", "MODEL"),
        ("predict x --out y.csv", "--data"),
        ("data lst", "list"),
    ],
)
def test_bad_options_are_explained(
    capsys: pytest.CaptureFixture[str], arguments: str, hint: str
) -> None:
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert hint in out + err and "Traceback" not in out + err


def test_interruption_is_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("scae.cli._run", interrupted)
    assert main(["presets"]) == 130
    assert capsys.readouterr().err == "scae: interrupted\n"


def test_presets_and_data_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert all(f"  {name}: " in answer("presets") for name in names()[:5])
    rows = json.loads(answer("presets", "--json"))
    assert [row["name"] for row in rows] == names() and all(row["reference"] for row in rows)
    (tmp_path / "svhn").mkdir()
    (tmp_path / "svhn" / "test_32x32.mat").write_bytes(b"<!doctype html><html>404")
    assert main(["data", "check", "--data", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    states = {(row["name"], row["split"]): row["state"] for row in json.loads(out)}
    assert states["svhn", "test"] == "broken" and states["mnist", "train"] == "missing"
    assert "broken data: svhn test" in err


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a small digits model after a few steps, and what the training printed."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    steps = ["--training.steps", "5", "--no-figures", "--out", str(folder)]
    return folder, answer("train", "digits", *SMALL, *steps)


def test_training_ends_with_scores_and_the_next_command(trained: tuple[Path, str]) -> None:
    folder, text = trained
    lines = text.splitlines()
    assert "Trained 5 steps in" in text and "LIN-MATCH, prior presences, train-test" in text
    assert "without a model: k-means on pixels" in text
    assert lines[-2:] == [
        f"Report:   {folder / 'report.html'}",
        f"Next:     scae explore {folder}",
    ]
    for name in ("config.json", "environment.json", "weights.safetensors", "report.html"):
        assert (folder / name).is_file()


def test_a_run_is_scored_clustered_and_drawn(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, _ = trained
    scores = json.loads(answer("evaluate", folder, "--json"))
    stored = json.loads((folder / "evaluation.json").read_text())
    assert scores["lin_match"] == stored["lin_match"]
    table = tmp_path / "clusters.csv"
    summary = json.loads(answer("predict", folder, "--data", "digits", "--out", table, "--json"))
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == summary["rows"] and {int(row["cluster"]) for row in rows} <= set(range(10))
    drawn = answer("figures", folder, "--only", "templates", "usage").split()
    assert [Path(path).name for path in drawn] == ["templates.png", "usage.png", "report.html"]
    assert "did you mean 'templates'?" in complaint(
        capsys, "figures", str(folder), "--only", "tmplates"
    )
    assert "no-such-data" in complaint(capsys, "evaluate", str(folder), "--dataset", "no-such-data")
    assert "already holds a run" in complaint(capsys, "train", "digits", "--out", str(folder))


def test_own_images_from_a_folder_to_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for number in range(12):
        picture = Image.linear_gradient("L").rotate(30 * number).resize((20, 16))
        picture.save(tmp_path / "photos" / f"{number}.png")
    own = ["--data", "photos", "--clusters", "3", "--training.steps", "2", "--no-figures"]
    own += ["--training.batch", "8"]
    assert "runs/images" in answer("train", "images", *SMALL[:-2], *own)
    config = json.loads((tmp_path / "runs/images/config.json").read_text())
    assert config["model"]["image_size"] == [16, 20] and config["model"]["parts"] == 4
    answer("predict", "runs/images", "--data", "photos", "--out", "clusters.csv")
    rows = list(csv.DictReader((tmp_path / "clusters.csv").open()))
    assert {row["file"] for row in rows} == {f"{number}.png" for number in range(12)}
    assert {int(row["cluster"]) for row in rows} <= {0, 1, 2}


def test_own_points_are_given_like_own_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    points = "".join(f"{n},{x},{y}\n" for n in range(8) for x in (0, 1) for y in (n, n + 1))
    (tmp_path / "points.csv").write_text("scene,x,y\n" + points)
    few = "--training.steps 2 --training.batch 4 --no-figures --no-evaluate --data points.csv"
    answer("train", "constellation", *few.split())
    config = json.loads((tmp_path / "runs/constellation/config.json").read_text())
    assert config["data"]["name"] == "points.csv"
