"""Models on the Hugging Face Hub, by its library's mixin; needs `pip install scae[hub]`.

A repository holds config.json, model.safetensors and a card; nothing in it is executed.
"""

from pathlib import Path
from typing import Any

from scae import config, files
from scae.api import Capsules, Loaded, load
from scae.api.loading import HUB_CONFIG, HUB_WEIGHTS
from scae.errors import ScaeError
from scae.prediction import CLUSTERS, read_clusters, write_clusters
from scae.weights_file import save_weights

try:
    import huggingface_hub
except ImportError:
    raise ScaeError(
        "The Hub needs huggingface_hub, which is not installed: pip install 'scae[hub]'."
    ) from None

CARD = """---
{{ card_data }}
---

# {{ name }}

A Stacked Capsule Autoencoder ({{ reference }}), made with `scae`.

```python
import scae.hub

model = scae.hub.from_pretrained("{{ repository }}")
```
"""


class HubCapsules(
    huggingface_hub.PyTorchModelHubMixin,
    library_name="scae",
    tags=["capsules", "unsupervised-learning", "clustering"],
    model_card_template=CARD,
):
    """What the mixin uploads and fetches, in the layout that `scae.load` reads."""

    def __init__(self, capsules: Any) -> None:
        self.capsules = capsules

    def _save_pretrained(self, save_directory: Path) -> None:
        loaded: Loaded = self.capsules
        files.write_json(save_directory / HUB_CONFIG, config.to_json(loaded.experiment))
        save_weights(loaded.model, loaded.experiment, save_directory / HUB_WEIGHTS)
        if (centres := read_clusters(loaded.folder)) is not None:
            write_clusters(save_directory, centres)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **options: Any) -> "HubCapsules":
        folder = model_id
        if not Path(folder).is_dir():
            wanted = [HUB_CONFIG, HUB_WEIGHTS, CLUSTERS]
            known = ("revision", "cache_dir", "force_download", "local_files_only", "token")
            chosen = {name: options[name] for name in known}
            folder = huggingface_hub.snapshot_download(model_id, allow_patterns=wanted, **chosen)
        return cls(load(Path(folder)))


def from_pretrained(repository: str | Path, device: str = "cpu", **options: Any) -> Capsules:
    """A model from the Hub by the name of its repository, or from a local folder.

    `options` are the mixin's: revision, token, cache_dir, force_download, local_files_only.
    """
    try:
        capsules: Capsules = HubCapsules.from_pretrained(str(repository), **options).capsules
    except ScaeError:
        raise
    except Exception as error:  # the library raises many kinds, none of them its own base class
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ScaeError(f"{str(repository)!r} could not be fetched: {reason}") from None
    capsules.model.to(device)
    return capsules


def push_to_hub(loaded: Loaded, repository: str, **options: Any) -> str:
    """Upload a model with a card to `user/name`; `options` are the mixin's (private, token)."""
    named = {"name": loaded.experiment.name, "reference": loaded.experiment.reference}
    card = named | {"repository": repository}
    return str(HubCapsules(loaded).push_to_hub(repository, model_card_kwargs=card, **options))
