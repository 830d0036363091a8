"""Named data sets: found, checked and downloaded; no network is used."""

import hashlib
from pathlib import Path
from typing import ClassVar

import pooch
import pytest

import data_files
from data_files import refuse
from scae.cli import main
from scae.data import DATASETS, dataset_status, datasets, download, load_images


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, bytes]:
    """Contents by URL in place of the network, and an empty cache; `asked` lists the requests."""
    contents: dict[str, bytes] = {}

    class Fake:
        asked: ClassVar[list[str]] = []

        def __init__(self, **_: object) -> None:
            pass

        def __call__(self, url: str, output: str, _: object) -> None:
            Fake.asked.append(url)
            if url not in contents:
                Path(output).write_bytes(b"half")  # a connection lost half-way
                raise OSError("unreachable")
            Path(output).write_bytes(contents[url])

    monkeypatch.setattr(pooch, "HTTPDownloader", Fake)
    monkeypatch.setattr(datasets, "RETRIES", 0)
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("SCAE_DATA", raising=False)
    contents["asked"] = Fake.asked  # type: ignore[assignment]
    return contents


def serve_mnist(
    served: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch, mirror: int
) -> None:
    """Tiny files on one mirror of MNIST, with checksums as if published."""
    mnist = DATASETS["mnist"]
    for path in data_files.write_mnist(folder).iterdir():
        served[mnist.mirrors[mirror] + path.name] = path.read_bytes()
        monkeypatch.setitem(mnist.md5, path.name, hashlib.md5(path.read_bytes()).hexdigest())


def test_second_mirror_and_no_second_download(
    tmp_path: Path, served: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_mnist(served, tmp_path / "there", monkeypatch, mirror=1)
    assert len(load_images("mnist", "train")) == 12  # downloaded where no folder is named
    paths = download("mnist40")
    assert len(paths) == 4 and {p.parent for p in paths} == {tmp_path / "cache" / "mnist"}
    asked = len(served["asked"])
    assert download("mnist") == paths and len(served["asked"]) == asked
    status = {(s.name, s.split): s for s in dataset_status(read=True)}
    assert status["mnist", "test"].state == "complete"


def test_wrong_contents_are_never_kept(tmp_path: Path, served: dict) -> None:
    for mirror in DATASETS["mnist"].mirrors:
        served[mirror + "train-images-idx3-ubyte.gz"] = b"<html>error</html>"
    refuse(lambda: download("mnist", tmp_path), "downloading failed: https://")
    refuse(lambda: download("svhn", tmp_path), "train_32x32.mat (OSError)")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_offline_says_what_to_do_in_one_sentence(tmp_path: Path, served: dict) -> None:
    where = str(tmp_path / "cache" / "mnist")
    refuse(lambda: load_images("mnist", "train"), "train-images-idx3-ubyte", where, "https://")
    refuse(lambda: load_images("affnist", "test"), "affNIST", "https://")
    refuse(lambda: download("digits"), "nothing to download", "mnist, fashion-mnist")


def test_missing_files_say_where_to_get_and_put_them(tmp_path: Path) -> None:
    for name, words in {
        "fashion-mnist": ("train-labels-idx1-ubyte", "https://"),
        "svhn": ("train_32x32.mat", "https://ufldl"),
        "cifar10": ("data_batch_*.bin", "cifar-10-binary.tar.gz", "https://"),
        "affnist": ("training_and_validation_batches/*.mat", "https://"),
        "mnist40": ("train-images-idx3-ubyte",),
        "affnist-style": ("train-images-idx3-ubyte",),
    }.items():
        refuse(lambda n=name: load_images(n, "train", tmp_path), str(tmp_path), *words)
    refuse(lambda: load_images("mnist", "train", tmp_path / "no"), "does not exist")
    refuse(lambda: load_images("mnist", "dev", tmp_path), "'dev'", "train, test")
    refuse(lambda: load_images("mnist", "train+train", tmp_path), "train+train")
    refuse(lambda: load_images("imagenet", "train"), "imagenet", "mnist40")
    refuse(lambda: load_images("digits", "dev"), "'dev'")
    refuse(lambda: load_images("constellations", "train"), "points")


def test_status_says_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = data_files.write_mnist(tmp_path)
    monkeypatch.setenv("SCAE_DATA", str(tmp_path))
    listed = {(s.name, s.split): s for s in dataset_status()}
    assert listed["mnist", "train"].state == listed["mnist40", "test"].state == "found"
    assert listed["svhn", "train"].state == "missing"
    assert "train_32x32.mat" in listed["svhn", "train"].detail
    assert listed["digits", "train"].state == "built in"
    broken = folder / "t10k-labels-idx1-ubyte.gz"
    broken.write_bytes(broken.read_bytes()[:-4])
    checked = {(s.name, s.split): s for s in dataset_status(read=True)}
    assert checked["mnist", "train"].state == "unofficial"
    assert checked["mnist", "train"].images == 12
    assert checked["mnist", "test"].state == "broken"
    assert str(broken) in checked["mnist", "test"].detail


def test_plain_files_win_over_gzipped_ones(tmp_path: Path) -> None:
    data_files.write_mnist(tmp_path, 12)
    data_files.write_mnist(tmp_path, 8, zipped=False)
    assert len(load_images("mnist", "train", tmp_path)) == 8


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data_files.write_mnist(tmp_path)
    assert main(["data", "list", "--data", str(tmp_path)]) == 0
    assert "svhn" in capsys.readouterr().out
    assert main(["data", "check", "--data", str(tmp_path), "--json"]) == 0
    assert '"state": "unofficial"' in capsys.readouterr().out
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"")
    assert main(["data", "check", "--data", str(tmp_path)]) == 2
    assert "broken data: mnist train" in capsys.readouterr().err
    assert main(["data", "download", "constellations"]) == 2
