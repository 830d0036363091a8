"""Runs one cell in its folder: `python -m scae.reproduce.cell FOLDER`, here or on a cluster.

The folder holds `cell.json`; training continues where it was interrupted, and `result.json`
is written last, so that a folder with one is a finished cell.
"""

import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from scae import config_json, files
from scae.config import ConstellationExperiment, ImageExperiment
from scae.data import ImageData, image_source, load_images, point_source, scenes
from scae.data.affnist import affine_style
from scae.data.interface import split_key
from scae.errors import ScaeError
from scae.evaluation import evaluate_constellations, evaluate_generalisation, evaluate_images
from scae.evaluation.clustering import RESTARTS
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.reproduce.code_version import code_version
from scae.reproduce.data_at_hand import DIGITS_STYLE
from scae.reproduce.plan import RESULT, SPEC
from scae.scoring import EVALUATION_SEED, SCENES
from scae.training import RunFolder, train
from scae.training.environment import describe

SUBSET_RESTARTS = 1


def run(folder: Path) -> dict[str, Any]:
    """Train, score and write the result of the cell in a folder."""
    spec = _read_spec(folder)
    if (folder / RESULT).is_file():
        finished: dict[str, Any] = json.loads((folder / RESULT).read_bytes())
        return finished
    begin, code, environment = time.perf_counter(), code_version(), describe()
    config = config_json.from_json(spec["experiment"], str(folder / SPEC))
    data_dir = None if spec["data_dir"] is None else Path(spec["data_dir"])
    seed = config.training.seed
    trained = train(
        config,
        image_source(config.data, data_dir, seed)
        if isinstance(config, ImageExperiment)
        else point_source(config.data, seed, config.training.steps),
        folder,
        resume=RunFolder(folder).holds_run(),
        accelerator=spec["device"],
        loggers=[],
    )
    wanted = spec["evaluation"]
    if isinstance(config, ImageExperiment):
        scores = _score_images(trained.model, config, wanted, data_dir)
    else:
        scores = _score_scenes(trained.model, config, wanted["examples"])
    result = {
        "name": spec["name"],
        "key": spec["key"],
        "code": code,
        "steps": trained.steps,
        "training_seconds": round(trained.seconds, 1),
        "seconds": round(time.perf_counter() - begin, 1),
        "environment": environment,
        **scores,
    }
    files.write_json(folder / RESULT, result)
    # Nothing can be resumed any more, and checkpoints are most of a run's size.
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return result


def _read_spec(folder: Path) -> dict[str, Any]:
    try:
        spec: dict[str, Any] = json.loads((folder / SPEC).read_bytes())
    except OSError as error:
        raise ScaeError(
            f"{folder / SPEC} cannot be read ({error.strerror}); expected a folder that "
            "`scae reproduce` made."
        ) from None
    return spec


def _score_images(
    model: CapsuleModel, config: ImageExperiment, wanted: dict[str, Any], data_dir: Path | None
) -> dict[str, Any]:
    assert isinstance(model, StackedCapsuleAutoencoder)
    if torch.cuda.is_available():
        model.to("cuda")
    limit = wanted["examples"]
    restarts = RESTARTS if limit is None else SUBSET_RESTARTS
    train_images, test_images = (
        load_images(config.data, split, data_dir) for split in ("train", "test")
    )
    fit, held_out = first(train_images, limit), first(test_images, limit)
    own = evaluate_images(
        model, fit, held_out, baselines=wanted["baselines"], restarts=restarts
    ).to_dict()
    own.pop("confusion")
    about = [train_images.summary, test_images.summary]
    scores: dict[str, Any] = {"own": own, "data": about}
    if wanted["transfer"] is not None:
        target = _transfer_images(wanted["transfer"], data_dir)
        other = evaluate_generalisation(
            model, fit, first(target, limit), dataset=wanted["transfer"], restarts=restarts
        ).to_dict()
        other.pop("confusion")
        scores["transfer"] = other
        about.append(target.summary)
    return scores


def _transfer_images(name: str, data_dir: Path | None) -> ImageData:
    if name != DIGITS_STYLE:
        return load_images(name, "test", data_dir)
    digits = load_images("digits", "test")
    warped = affine_style(digits.images, split_key("test"))
    return replace(digits, images=warped, name=DIGITS_STYLE)


def first(data: ImageData, count: int | None) -> ImageData:
    """The first `count` images of a split, or all."""
    labels = None if data.labels is None else data.labels[:count]
    return replace(data, images=data.images[:count], labels=labels, files=data.files[:count])


def _score_scenes(
    model: CapsuleModel, config: ConstellationExperiment, examples: int | None
) -> dict[str, Any]:
    assert isinstance(model, ConstellationAutoencoder)
    found = scenes(config.data, EVALUATION_SEED, examples or SCENES)
    assert found.pattern_id is not None
    result = evaluate_constellations(
        model,
        found.points,
        found.presence,
        found.pattern_id.numpy(),
        capsules=config.model.objects,
    )
    return {"own": result.to_dict(), "data": [found.summary]}


def main(arguments: list[str]) -> int:
    """The command; 0 fine, 2 bad input."""
    if len(arguments) != 1:
        print("usage: python -m scae.reproduce.cell FOLDER", file=sys.stderr)
        return 2
    try:
        run(Path(arguments[0]))
    except ScaeError as error:
        print(f"scae: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
