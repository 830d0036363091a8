"""Models in the layout of the Hugging Face Hub: config.json and model.safetensors.

That is what `huggingface_hub.PyTorchModelHubMixin` writes and reads. Local folders need
nothing but this package; the Hub itself needs `pip install scae[hub]`.
"""

import tempfile
from pathlib import Path
from typing import Any

from scae import config_json, files
from scae.api import Capsules, load
from scae.api.loading import HUB_CONFIG, HUB_WEIGHTS
from scae.errors import ScaeError
from scae.export import Exportable, as_loaded
from scae.weights_file import save_weights

CARD = """---
library_name: scae
tags: [capsules, unsupervised-learning, clustering]
---

# {name}

A Stacked Capsule Autoencoder ({source}).

```python
import scae.hub

model = scae.hub.from_pretrained("{repository}")
```
"""


def save_pretrained(source: Exportable, folder: str | Path) -> Path:
    """Write a model as a folder that `from_pretrained` and `scae.load` read."""
    loaded, path = as_loaded(source), Path(folder)
    if path.is_file():
        raise ScaeError(f"{path} is a file; give the name of a folder to write.")
    path.mkdir(parents=True, exist_ok=True)
    files.write_json(path / HUB_CONFIG, config_json.to_json(loaded.experiment))
    save_weights(loaded.model, loaded.experiment, path / HUB_WEIGHTS)
    return path


def from_pretrained(
    source: str | Path, device: str = "cpu", revision: str | None = None, **options: Any
) -> Capsules:
    """A model from a local folder, or from the Hub by the name of its repository.

    `options` go to `huggingface_hub.snapshot_download` (token, cache_dir, ...). Only the two
    files of the layout are fetched, and nothing in them is executed.
    """
    if Path(source).exists():
        return load(Path(source), device)
    hub = _library(f"Folder {source} does not exist, and fetching it from the Hub")
    try:
        folder = hub.snapshot_download(
            str(source), revision=revision, allow_patterns=[HUB_CONFIG, HUB_WEIGHTS], **options
        )
    except Exception as error:  # the library raises many kinds, none of them its own base class
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ScaeError(f"{str(source)!r} could not be fetched from the Hub: {reason}") from None
    return load(Path(folder), device)


def push_to_hub(
    source: Exportable, repository: str, private: bool | None = None, token: str | None = None
) -> str:
    """Upload a model with a short card to `user/name` on the Hub and return its address."""
    hub = _library("Uploading to the Hub")
    loaded = as_loaded(source)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(loaded, folder)
        experiment = loaded.experiment
        text = CARD.format(name=experiment.name, source=experiment.source, repository=repository)
        (Path(folder) / "README.md").write_text(text, encoding="utf-8")
        api = hub.HfApi(token=token)
        address = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder)
    return str(address)


def _library(what: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise ScaeError(
            f"{what} needs huggingface_hub, which is not installed: pip install 'scae[hub]'."
        ) from None
    return huggingface_hub
