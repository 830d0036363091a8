"""Downloads with published checksums, from several mirrors, over HTTPS only."""

from dataclasses import dataclass
from pathlib import Path

from scae.errors import ScaeError

TIMEOUT = 30
RETRIES = 2


@dataclass(frozen=True)
class Remote:
    """A published file: its name, its published MD5 and where it can be had."""

    name: str
    md5: str
    mirrors: tuple[str, ...]

    def urls(self) -> list[str]:
        return [mirror + self.name for mirror in self.mirrors]


_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_FASHION = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
_SVHN = ("https://ufldl.stanford.edu/housenumbers/",)
_CIFAR = ("https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/")
_CIFAR_ARCHIVE = Remote("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", _CIFAR)

REMOTES: dict[str, dict[str, tuple[Remote, ...]]] = {
    "mnist": {
        "train": (
            Remote("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", _MNIST),
            Remote("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", _MNIST),
        ),
        "test": (
            Remote("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", _MNIST),
            Remote("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", _MNIST),
        ),
    },
    "fashion-mnist": {
        "train": (
            Remote("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", _FASHION),
            Remote("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", _FASHION),
        ),
        "test": (
            Remote("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", _FASHION),
            Remote("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", _FASHION),
        ),
    },
    "svhn": {
        "train": (Remote("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", _SVHN),),
        "test": (Remote("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", _SVHN),),
        "extra": (Remote("extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7", _SVHN),),
    },
    "cifar10": {"train": (_CIFAR_ARCHIVE,), "test": (_CIFAR_ARCHIVE,)},
}
"""No checksums of the affNIST files were ever published, so those are not downloaded."""

HOMES = {
    "mnist": _MNIST[0],
    "fashion-mnist": "https://github.com/zalandoresearch/fashion-mnist",
    "svhn": "https://ufldl.stanford.edu/housenumbers/",
    "cifar10": "https://www.cs.toronto.edu/~kriz/cifar.html",
    "affnist": "https://www.cs.toronto.edu/~tijmen/affNIST/",
}


def published_md5s(name: str) -> frozenset[str]:
    """MD5 of every published file of a data set."""
    files = REMOTES.get(name, {}).values()
    return frozenset(remote.md5 for split in files for remote in split)


def download(remote: Remote, folder: Path) -> Path:
    """Fetch one file unless a whole copy is there; it appears in the folder only when whole."""
    import pooch

    reasons = []
    for url in remote.urls():
        if not url.startswith("https://"):
            raise ScaeError(f"Refused to download {url}: only https is allowed.")
        fetcher = pooch.create(
            path=folder,
            base_url="",
            registry={remote.name: f"md5:{remote.md5}"},
            urls={remote.name: url},
            retry_if_failed=RETRIES,
        )
        downloader = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT)
        try:
            return Path(fetcher.fetch(remote.name, downloader=downloader))
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            reasons.append(f"{url} ({type(error).__name__})")
    raise ScaeError(f"downloading {remote.name} failed: {', '.join(reasons)}.")
