"""The commands but `train`: one function each, whose signature and docstring are its help.

The library is imported inside the functions, so that help and bad options answer at once.
"""

from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from scae.config import Experiment

WHICH = "Run folder, weights file or name of a shipped model."
WHERE = "Folder of data sets; default: SCAE_DATA, else downloads."
Model = Annotated[Positional[str], arg(metavar="MODEL", help=WHICH)]
DataSets = Annotated[Path | None, arg(help=WHERE)]
Name = Literal[
    "table1", "table2", "constellations", "all",
    "figure1", "figure3", "figure4", "figure5", "appendix-b",
]  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a command has to say: as JSON, for people, and what went wrong all the same."""

    result: Any
    text: str
    failure: str = ""


def score_table(experiment: Experiment, scores: dict[str, Any], short: bool = False) -> str:
    """Scores in per cent beside the paper's and those without a model, then the capsules."""
    from scae.scores import diagnosis_rows, score_rows, summary

    rows = score_rows(experiment, scores, short)
    known = any(paper != "–" for _, _, paper in rows)
    capsules = [(text, value, "") for text, value in diagnosis_rows(scores.get("capsules", {}))]
    table = [("in %", "here", "paper"), *rows, *([("", "", "")] if capsules else []), *capsules]
    width = max(len(name) for name, _, _ in table)
    lines = [f"{name:{width}}  {ours:>6}  {paper if known else ''}" for name, ours, paper in table]
    return "\n".join([summary(scores), *map(str.rstrip, lines)])


def evaluate(
    model: Model,
    data: DataSets = None,
    dataset: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Answer:
    """Score a model on labelled data.

    Args:
        dataset: Data to score on, e.g. affnist-style; default: what the model was made for.
        limit: Score only this many images of each split, or scenes.
        seed: Seed of k-means, or of the scenes that are scored.
    """
    from scae.api import load
    from scae.evaluation import evaluate

    loaded = load(model)
    score = partial(evaluate, seed=seed, limit=limit)
    scores = score(loaded.model, loaded.experiment, dataset, data)
    return Answer(scores, score_table(loaded.experiment, scores))


def predict(
    model: Model,
    data: str,
    out: Path,
    clusters: int | None = None,
    seed: int = 0,
    strict: bool = False,
) -> Answer:
    """Cluster images (or segment point sets) with a trained model and write a CSV file.

    Images go to the nearest of the clusters that the model keeps, so numbers are stable. The
    columns are file, cluster, strongest_object and presence; for point sets scene, point, x, y
    and object. Of images, clusters.html beside the file shows examples of each cluster.

    Args:
        data: Image or folder of images, .npz or .npy file, CSV of points, or a data set's name.
        out: CSV file to write.
        clusters: Number of clusters, if not the model's own; fitted on these images.
        seed: Seed of k-means.
        strict: Refuse a folder with images that cannot be read, instead of leaving them out.
    """
    from scae.api import load
    from scae.prediction import predict

    found = predict(load(model), data, clusters=clusters, seed=seed, strict=strict)
    _, *gallery = found.write(out)
    sizes = ", ".join(f"{group}: {size}" for group, size in found.sizes.items())
    lines = [f"{len(found.rows)} rows in {out} ({sizes})", *map(str, gallery), found.note]
    text = "\n".join(filter(None, lines))
    summary = {"out": out, "rows": len(found.rows), "sizes": found.sizes, "note": found.note}
    summary["gallery"] = gallery[0] if gallery else None
    return Answer(summary, text)


def figures(
    model: Model, out: Path | None = None, data: DataSets = None, only: tuple[str, ...] = ()
) -> Answer:
    """Draw the paper's figures of a model as PNG; of a run, also its report.html.

    Args:
        out: Folder to write to; default: the run's own folder figures, or ./figures-NAME.
        only: Names of the figures to draw; default: all that apply to the model.
    """
    from scae.api import load, shipped
    from scae.figures import make_figures
    from scae.report import write_report

    loaded = load(model)
    # Shipped models live in the installed package, which is no place to write to.
    run = None if model in shipped() else loaded.folder
    folder = run / "figures" if run else Path(f"figures-{loaded.experiment.name}")
    paths = make_figures(loaded, out or folder, data, names=only or None)
    if run and out is None:
        paths.append(write_report(run, loaded))
    return Answer({"files": paths}, "\n".join(map(str, paths)))


def explore(
    model: Model = "mnist",
    data: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
) -> None:
    """Open a local web page: draw a digit, see its parts and objects, drag them.

    Args:
        data: Folder of data sets, for pictures to pick from; works without.
        host: Address to listen on; others can reach the page only if you change it.
        port: Port to listen on; 0 takes a free one.
        browser: Open the page in the browser.
    """
    from scae.api import load
    from scae.explorer import serve

    serve(load(model), host, port, browser, data)


def export(model: Model, out: Path | None = None) -> Answer:
    """Write a model as ONNX, for use without torch.

    Args:
        out: File to write; default: NAME.onnx.
    """
    from scae.api import load
    from scae.export import export

    loaded = load(model)
    path = export(loaded, out or Path(loaded.experiment.name.replace("/", "-") + ".onnx"))
    return Answer({"file": path}, f"Wrote {path}")


def reproduce(
    name: Annotated[Positional[Name], arg(metavar="NAME")],
    budget: Literal["smoke", "cpu", "paper"] | None = None,
    seeds: int | None = None,
    steps: tuple[int, ...] = (),
    transfer: Literal["affnist", "affnist-style"] | None = None,
    only: tuple[str, ...] = (),
    jobs: int = 1,
    out: Path = Path("results"),
    data_dir: Annotated[DataSets, arg(name="data")] = None,
    table_only: bool = False,
) -> Answer:
    """Make a table or figure of the paper again; interrupted, the same command continues.

    A table that was begun keeps its settings unless others are given. Figures are drawn from
    the shipped models; `scae figures` draws those of any other.

    Args:
        name: Table or figure; `all` is all tables.
        budget: A few steps on digits, the recommended presets (default), or the literal ones.
        seeds: Trainings per row; default: as in the paper for `paper`, else 3, of ablations 2.
        steps: Steps of every training, one number or one for each data set of the table.
        transfer: What models of 40x40 MNIST are scored on as well; default: affnist-style.
        only: Rows of table 2 to train, by name (full, no-noise, ...) or group (a to f).
        jobs: Trainings side by side, of one thread each.
        out: Folder of tables and their cells, and of figures.
        table_only: Train nothing: write the table from the cells that are there.
    """
    given = {option: value for option, value in locals().items() if option != "name"}
    from scae.reproduce import FIGURES, reproduce, reproduce_figure
    from scae.reproduce.plan import DATASETS

    if name in FIGURES:
        paths, missing = reproduce_figure(name, out, data_dir)
        lines = [*map(str, paths), *(f"not shipped yet: {model}" for model in missing)]
        return Answer({"files": paths, "missing": missing}, "\n".join(lines))
    tables: Any = DATASETS if name == "all" else [name]
    done = [reproduce(table, **given) for table in tables]
    failed = sum(len(each.failed) for each in done)
    sentence = f"{failed} trainings failed; the same command tries them again." if failed else ""
    return Answer(done, "\n".join(each.text for each in done), sentence)


def data(
    action: Positional[Literal["list", "check", "download"]],
    name: Positional[str] = "",
    data: DataSets = None,
) -> Answer:
    """List the data sets, read those that are there, or download one by its checksums.

    Args:
        action: `check` reads every file and ends with exit code 2 if one is broken.
        name: The data set to download, as `scae data list` has it.
    """
    from scae.data import dataset_status, download

    if action == "download":
        paths = download(name, data)
        return Answer({"files": paths}, "\n".join(map(str, paths)))
    rows = dataset_status(data, read=action == "check")
    lines = [f"{row.name:14}  {row.split:5}  {row.state:8}  {row.detail}" for row in rows]
    broken = ", ".join(f"{row.name} {row.split}" for row in rows if row.state == "broken")
    failure = f"broken data: {broken}; replace the files named above." if broken else ""
    return Answer(rows, "\n".join(lines), failure)


def presets() -> Answer:
    """List every preset with its table or figure of the paper and its measured result."""
    from scae.presets import describe, names

    rows = [describe(name) for name in names()]
    lines = []
    for kind, group in groupby(rows, lambda row: row.kind):
        lines.append(f"{kind.capitalize()}:")
        for row in group:
            lines.append(f"  {row.name}: {row.summary} ({row.reference})")
            lines += [f"      {row.measured}"] if row.measured else []
    return Answer(rows, "\n".join(lines))
