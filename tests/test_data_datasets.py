"""Named data sets: found, checked and downloaded; no network is used."""

import hashlib
from pathlib import Path

import pooch
import pytest

import data_files
from data_files import refuse
from scae.cli import main
from scae.data import dataset_status, datasets, download, load_images
from scae.data.datasets import DATASETS

Served = tuple[dict[str, bytes], list[str]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Served:
    """Contents by URL in place of the network, the URLs asked for, and an empty cache."""
    contents: dict[str, bytes] = {}
    asked: list[str] = []

    def fetch(url: str, output: str, _: object) -> None:
        asked.append(url)
        Path(output).write_bytes(contents.get(url, b"half"))
        if url not in contents:
            raise OSError("a connection lost half-way")

    monkeypatch.setattr(pooch.downloaders, "HTTPDownloader", lambda **_: fetch)
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("SCAE_DATA", raising=False)
    return contents, asked


def states(data_dir: Path | None = None, read: bool = False) -> dict[tuple[str, str], str]:
    return {(s.name, s.split): s.state for s in dataset_status(data_dir, read)}


def test_files_are_downloaded_once(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, asked = served
    mnist = DATASETS["mnist"]
    for path in data_files.write_mnist(tmp_path / "there").iterdir():
        contents[mnist.url + path.name] = path.read_bytes()
        monkeypatch.setitem(mnist.md5, path.name, hashlib.md5(path.read_bytes()).hexdigest())
    assert len(load_images("mnist", "train")) == 12  # downloaded where no folder is named
    paths = download("mnist40")
    assert len(paths) == 4 and {p.parent for p in paths} == {tmp_path / "cache" / "mnist"}
    assert download("mnist") == paths and len(asked) == 4


def test_wrong_contents_are_never_kept(tmp_path: Path, served: Served) -> None:
    served[0][DATASETS["mnist"].url + "train-images-idx3-ubyte.gz"] = b"<html>error</html>"
    refuse(lambda: download("mnist", tmp_path), "Downloading https://", "failed")
    refuse(lambda: download("svhn", tmp_path), "train_32x32.mat", "(OSError)")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    where = str(tmp_path / "cache" / "mnist")
    refuse(lambda: load_images("mnist", "train"), "train-images-idx3-ubyte", where, "https://")
    refuse(lambda: download("digits"), "nothing to download", "mnist, fashion-mnist")


def test_missing_files_say_where_to_get_and_put_them(tmp_path: Path) -> None:
    for name, words in {
        "fashion-mnist": ("train-labels-idx1-ubyte", "https://"),
        "svhn": ("train_32x32.mat", "https://ufldl"),
        "cifar10": ("data_batch_*.bin", "cifar-10-binary.tar.gz", "https://"),
        "affnist-style": ("train-images-idx3-ubyte",),
    }.items():
        refuse(lambda n=name: load_images(n, "train", tmp_path), str(tmp_path), *words)
    refuse(lambda: load_images("mnist", "train", tmp_path / "no"), "does not exist")
    refuse(lambda: load_images("mnist", "dev", tmp_path), "'dev'", "train, test")
    refuse(lambda: load_images("imagenet", "train"), "imagenet", "mnist40")
    refuse(lambda: load_images("constellations", "train"), "points")


def test_status_says_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = data_files.write_mnist(tmp_path)
    listed = states(tmp_path)
    assert listed["mnist", "train"] == listed["mnist40", "test"] == "found"
    assert listed["svhn", "train"] == "missing" and listed["digits", "train"] == "built in"
    assert main(["data", "check", "--data", str(tmp_path)]) == 0
    assert "12 of 60000" in capsys.readouterr().out
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"")
    assert states(tmp_path, read=True)["mnist", "test"] == "broken"
    assert main(["data", "check", "--data", str(tmp_path)]) == 2
    assert "broken data: mnist test" in capsys.readouterr().err
