"""Downloads: checksums, mirrors, retries, nothing half-written; no network is used."""

import hashlib
from pathlib import Path
from typing import ClassVar

import pooch
import pytest

from scae.data import downloads, load_images
from scae.data.downloads import REMOTES, Remote, download
from scae.errors import ScaeError

CONTENT = b"the published file"
FILE = Remote(
    "some.bin",
    hashlib.md5(CONTENT).hexdigest(),
    ("https://first.example/", "https://second.example/"),
)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes | Exception]:
    """Contents (or errors) by URL, in place of the network; counts requests per URL."""
    contents: dict[str, bytes | Exception] = {}

    class Fake:
        asked: ClassVar[list[str]] = []

        def __init__(self, **_: object) -> None:
            pass

        def __call__(self, url: str, output: str, _: object) -> None:
            Fake.asked.append(url)
            answer = contents.get(url, OSError("unreachable"))
            if isinstance(answer, Exception):
                Path(output).write_bytes(CONTENT[:5])  # a connection lost half-way
                raise answer
            Path(output).write_bytes(answer)

    monkeypatch.setattr(pooch, "HTTPDownloader", Fake)
    monkeypatch.setattr(downloads, "RETRIES", 0)
    contents["asked"] = Fake.asked  # type: ignore[assignment]
    return contents


def test_second_mirror_and_no_second_download(tmp_path: Path, served: dict) -> None:
    served["https://second.example/some.bin"] = CONTENT
    path = download(FILE, tmp_path / "new")
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["some.bin"]
    asked = len(served["asked"])
    assert download(FILE, tmp_path / "new") == path and len(served["asked"]) == asked


def test_wrong_contents_are_never_kept(tmp_path: Path, served: dict) -> None:
    for mirror in FILE.mirrors:
        served[mirror + FILE.name] = b"<html>error</html>"
    with pytest.raises(ScaeError, match=r"some\.bin failed: https://first.*https://second"):
        download(FILE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_download_leaves_nothing(tmp_path: Path, served: dict) -> None:
    with pytest.raises(ScaeError):
        download(FILE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_https(tmp_path: Path, served: dict) -> None:
    with pytest.raises(ScaeError, match="only https"):
        download(Remote("a", "0" * 32, ("http://plain.example/",)), tmp_path)
    files = {remote for splits in REMOTES.values() for split in splits.values() for remote in split}
    assert all(url.startswith("https://") for remote in files for url in remote.urls())
    assert all(len(remote.md5) == 32 for remote in files)


def test_offline_says_what_to_do_in_one_sentence(
    tmp_path: Path, served: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCAE_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / name)
    with pytest.raises(ScaeError) as caught:
        load_images("mnist", "train")
    message = str(caught.value)
    for word in ("train-images-idx3-ubyte.gz", str(tmp_path / "scae" / "mnist"), "https://"):
        assert word in message
    assert "\n" not in message
    with pytest.raises(ScaeError, match="affNIST"):
        load_images("affnist", "test")
