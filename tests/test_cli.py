"""The command line: help, one-sentence errors, exit codes, and JSON on standard output."""

import csv
import json
import subprocess
import sys
from dataclasses import dataclass

import pytest

from scae.cli import COMMANDS, main
from scae.cli.options import option_names, parse
from scae.config import ConstellationExperiment, ImageExperiment
from scae.errors import ScaeError
from scae.presets import names, preset


def _fails(capsys, *arguments: str) -> str:
    """Run a command that has to fail as bad input does; returns its sentence."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("scae: ") and err.count("\n") == 1, err
    assert "Traceback" not in err and "│" not in err
    return err.strip()


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name}" in text for name in COMMANDS)


def test_help_starts_without_torch():
    code = "import sys, scae.cli; scae.cli.main(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys, command):
    assert main([command, "--help"]) == 0
    assert f"scae {command}" in capsys.readouterr().out


def test_train_help_gives_meaning_and_paper_value(capsys):
    assert main(["train", "mnist", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Part capsules M, each with one template. Paper: 24" in text
    assert "--optimizer.lr" in text and "Learning rate. Paper: 1e-5" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("trian",), "did you mean `scae train`?"),
        (("train",), ""),
        (("train", "mnst"), "no preset 'mnst'; did you mean 'mnist'?"),
        (("train", "--model.parts", "3"), "needs a preset"),
        (("train", "mnist", "--model.prts", "32"), "did you mean --model.parts?"),
        (("train", "mnist", "--model.parts", "many"), "parts: 'many' is not a whole number"),
        (("train", "mnist", "--optimizer.lr", "fast"), "--optimizer.lr: 'fast' is not a number"),
        (("train", "mnist", "--model.alpha", "x"), "not one of 'learned', 'coupled'"),
        (("train", "mnist", "--model.parts"), "--model.parts needs a value"),
        (("train", "constellation", "--model.parts", "3"), "unknown option --model.parts"),
        (("train", "images", "--clusters", "3"), "needs --data FOLDER"),
        (("train", "images", "--data", "photos"), "needs --clusters N"),
        (("train", "digits", "--training.steps", "0"), "training.steps is 0"),
        (("train", "digits", "--devices", "2"), "needs --out"),
        (("evaluate",), "SOURCE is required"),
        (("evaluate", "no-such-model"), "There is no model 'no-such-model'"),
        (("evaluate", "x", "--seed", "1.5"), "--seed: '1.5' is not a whole number"),
        (("evaluate", "digits", "--seed", "-1"), "--seed is -1; give a whole number from 0 to"),
        (
            ("predict", "digits", "--data", "digits", "--out", "p.csv", "--seed", str(2**32)),
            "--seed is 4294967296; give a whole number from 0 to",
        ),
        (("evaluate", "x", "--jsn"), "unknown option --jsn; did you mean --json?"),
        (("predict", "x", "--out", "y.csv"), "--data is required"),
        (("data",), "needs one of list, check, download"),
        (("data", "lst"), "not 'lst'"),
        (("data", "list", "--data", "/no/such/folder"), "/no/such/folder does not exist"),
        (("data", "download", "digits"), "nothing to download"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_exit_code_2(
    capsys, tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    if arguments == ("train",):
        assert main(arguments) == 0  # the list of presets is an answer
        assert "digits" in capsys.readouterr().out
    else:
        assert sentence in _fails(capsys, *arguments)


def test_a_folder_without_weights_is_explained(capsys, tmp_path):
    assert "holds no weights.safetensors" in _fails(capsys, "evaluate", str(tmp_path))
    broken = tmp_path / "weights.safetensors"
    broken.write_bytes(b"not a safetensors file")
    assert "not a readable safetensors file" in _fails(capsys, "evaluate", str(broken))


def test_interruption_is_130(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("scae.cli._run", interrupted)
    assert main(["presets"]) == 130
    assert capsys.readouterr().err == "scae: interrupted\n"


def test_presets_list_source_and_measurement(capsys):
    assert main(["presets"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name}\n" in text for name in names())
    assert main(["presets", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == names()
    assert all(row["source"] for row in rows)


def test_data_check_is_json_and_fails_on_broken_files(capsys, tmp_path):
    (tmp_path / "svhn").mkdir()
    (tmp_path / "svhn" / "test_32x32.mat").write_bytes(b"<!doctype html><html>404")
    assert main(["data", "list", "--data", str(tmp_path), "--json"]) == 0
    states = {(r["name"], r["split"]): r["state"] for r in json.loads(capsys.readouterr().out)}
    assert states["svhn", "test"] == "found" and states["mnist", "train"] == "missing"
    assert main(["data", "check", "--data", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    states = {(r["name"], r["split"]): r["state"] for r in json.loads(out)}
    assert states["svhn", "test"] == "broken"
    assert "broken data: svhn test" in err


def _dotted(config: object, prefix: str = "") -> set[str]:
    fields = vars(config)
    names = {
        f"--{prefix}{k}".replace("_", "-") for k, v in fields.items() if not hasattr(v, "__dict__")
    }
    for key, value in fields.items():
        if hasattr(value, "__dict__"):
            names |= _dotted(value, f"{prefix}{key}.")
    return names


@pytest.mark.parametrize("name", ["mnist", "constellation"])
def test_every_field_of_an_experiment_is_an_option(name):
    from scae.cli.train import TrainImages, TrainPoints

    experiment = preset(name)
    options = TrainImages if isinstance(experiment, ImageExperiment) else TrainPoints
    assert _dotted(experiment) <= set(option_names(options(experiment=experiment)))


def test_overrides_reach_the_experiment():
    from scae.cli.train import _options

    given = "--model.parts 32 --optimizer.lr 1e-4 --model.cnn-strides 1 1 2 2 --data.canvas 40"
    switches = "--model.no-deformations --model.noise.no-part --data /tmp --out x --resume"
    options = _options("mnist", f"{given} {switches}".split())
    experiment = options.experiment
    assert experiment.model.parts == 32 and experiment.optimizer.lr == 1e-4
    assert experiment.model.cnn_strides == (1, 1, 2, 2) and experiment.data.canvas == 40
    assert not experiment.model.deformations and not experiment.model.noise.part
    assert str(options.data_dir) == "/tmp" and options.resume
    assert experiment.data.name == "mnist"
    points = _options("constellation", ["--data.noise", "0.1", "--model.votes=6"]).experiment
    assert isinstance(points, ConstellationExperiment)
    assert points.data.noise == 0.1 and points.model.votes == 6


def test_negative_numbers_and_equals_signs_are_values():
    @dataclass(frozen=True)
    class Example:
        shift: float = 0.0
        name: str = ""

    assert parse(Example, ["--shift", "-2.5", "--name=--x"], "example") == Example(-2.5, "--x")
    with pytest.raises(ScaeError, match="unknown option --shfit; did you mean --shift"):
        parse(Example, ["--shfit=1"], "example")


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """Twenty steps of a small digits model, as a user would start them."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    small = "--model.parts 4 --model.objects 10 --model.cnn-channels 8 8 8 8 --training.batch 16"
    quick = "--training.steps 20 --loggers none --no-figures --json"
    command = f"train digits {small} {quick} --out {folder}"
    done = subprocess.run(
        [sys.executable, "-m", "scae.cli", *command.split()], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_training_prints_scores_beside_pixels_and_fills_the_folder(small_run):
    folder, summary = small_run
    assert summary["steps"] == 20 and summary["folder"] == str(folder)
    scores = summary["evaluation"]
    assert set(scores["lin_match"]["prior"]) == {"train-test", "full"}
    assert scores["baselines"]["k-means on pixels"]["full"] > 0.6
    for name in (
        "config.json",
        "metrics.csv",
        "environment.json",
        "weights.safetensors",
        "report.html",
    ):
        assert (folder / name).is_file()


def test_evaluating_a_run_repeats_its_scores(small_run, capsys):
    folder, summary = small_run
    assert main(["evaluate", str(folder), "--json", "--no-baselines"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["lin_match"] == summary["evaluation"]["lin_match"]
    assert main(["evaluate", str(folder / "weights.safetensors"), "--no-baselines"]) == 0
    assert "LIN-PRED, posterior" in capsys.readouterr().out


def test_a_model_of_another_size_refuses_the_images(small_run, capsys, tmp_path):
    folder, _ = small_run
    sentence = _fails(capsys, "evaluate", str(folder), "--dataset", "no-such-data")
    assert "no-such-data" in sentence


def test_predict_writes_one_row_per_image(small_run, capsys, tmp_path):
    folder, _ = small_run
    out = tmp_path / "clusters.csv"
    command = ["predict", str(folder), "--data", "digits", "--out", str(out), "--clusters", "5"]
    assert main([*command, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == summary["rows"] == sum(summary["sizes"].values())
    assert {int(row["cluster"]) for row in rows} <= set(range(5))


def test_predict_keeps_the_scenes_and_places_of_a_file(capsys, tmp_path, monkeypatch):
    """All of them, also where there are more than are scored."""
    monkeypatch.setattr("scae.prediction.SCENES", 2)
    corners = [(100.5, -3), (101.5, -3), (101.5, -2), (100.5, -2)]
    given = [(f"s{n}", x + n, y) for n in range(4) for x, y in corners]
    points, out = tmp_path / "points.csv", tmp_path / "objects.csv"
    points.write_text("scene,x,y\n" + "".join(f"{s},{x},{y}\n" for s, x, y in given))
    command = ["predict", "constellation", "--data", str(points), "--out", str(out)]
    assert main(command) == 0
    rows = [(r["scene"], float(r["x"]), float(r["y"])) for r in csv.DictReader(out.open())]
    assert rows == given
    objects = [row["object"] for row in csv.DictReader(out.open())]
    assert all(len(set(objects[i : i + 4])) == 1 for i in range(0, 16, 4))  # one square each


def test_own_points_are_given_like_own_images(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},{x},{y}\n" for n in range(8) for x in (0, 1) for y in (n, n + 1))
    (tmp_path / "points.csv").write_text("scene,x,y\n" + rows)
    few = "--training.steps 2 --training.batch 4 --no-figures --no-evaluate --loggers none"
    assert main(["train", "constellation", "--data", "points.csv", *few.split()]) == 0
    config = json.loads((tmp_path / "runs/constellation/config.json").read_text())
    assert config["data"]["name"] == "points.csv"
    capsys.readouterr()
    sentence = _fails(capsys, "train", "constellation", "--data", "nothing.csv", *few.split())
    assert "nothing.csv does not exist" in sentence


def test_predict_resizes_as_training_did(capsys, tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for number, size in enumerate([(30, 20), (25, 25), (16, 16)]):
        Image.new("L", size, 40 * number).save(tmp_path / "photos" / f"{number}.png")
    small = (
        "--data.size 16 --model.parts 3 --model.cnn-channels 8 8 8 8 --training.steps 2 "
        "--no-figures --no-evaluate --loggers none --out run"
    )
    assert main(["train", "images", "--data", "photos", "--clusters", "2", *small.split()]) == 0
    assert main(["predict", "run", "--data", "photos", "--out", "c.csv"]) == 0
    assert len(list(csv.DictReader((tmp_path / "c.csv").open()))) == 3


def test_one_figure_of_a_run(small_run, capsys, tmp_path):
    folder, _ = small_run
    assert (
        main(["figures", str(folder), "--only", "templates", "--out", str(tmp_path), "--json"]) == 0
    )
    drawn = json.loads(capsys.readouterr().out)["files"]
    assert sorted(drawn) == [str(tmp_path / "templates.png"), str(tmp_path / "templates.svg")]
    sentence = _fails(capsys, "figures", str(folder), "--only", "tmplates")
    assert "did you mean 'templates'?" in sentence


@pytest.mark.slow
def test_own_images_from_a_folder_to_clusters_and_figures(capsys, tmp_path, monkeypatch):
    from PIL import Image
    from sklearn.datasets import load_digits

    monkeypatch.chdir(tmp_path)
    for i, pixels in enumerate(load_digits().images[:60]):
        (tmp_path / "photos").mkdir(exist_ok=True)
        picture = Image.fromarray((pixels * 15.9).astype("uint8")).resize((20, 16))
        picture.save(tmp_path / "photos" / f"{i}.png")
    small = "--model.parts 4 --model.cnn-channels 8 8 8 8 --training.steps 5 --loggers none"
    assert main(["train", "images", "--data", "photos", "--clusters", "3", *small.split()]) == 0
    assert "runs/images" in capsys.readouterr().out
    config = json.loads((tmp_path / "runs/images/config.json").read_text())
    assert config["model"]["image_size"] == [16, 20] and config["model"]["classes"] == 3
    assert config["training"]["batch"] == 60 and config["model"]["parts"] == 4
    assert (tmp_path / "runs/images/figures/templates.png").is_file()
    assert "data:image/png" in (tmp_path / "runs/images/report.html").read_text()
    assert main(["predict", "runs/images", "--data", "photos", "--out", "clusters.csv"]) == 0
    rows = list(csv.DictReader((tmp_path / "clusters.csv").open()))
    assert {row["file"] for row in rows} == {f"{i}.png" for i in range(60)}
    assert {int(row["cluster"]) for row in rows} <= {0, 1, 2}


def test_training_again_does_not_touch_a_finished_run(small_run, capsys):
    folder, _ = small_run
    assert "already holds a run" in _fails(capsys, "train", "digits", "--out", str(folder))
