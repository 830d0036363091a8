"""Starting a training from the weights of another one."""

from pathlib import Path

import torch

from scae import weights_file
from scae.api.loading import find_weights
from scae.errors import ScaeError
from scae.models import CapsuleModel


def start_from(model: CapsuleModel, source: str | Path) -> None:
    """Copy the weights of `source`, a shipped model, a run folder or a file, into `model`.

    The other model may be larger or smaller: every tensor that fits by name and shape is
    taken, the others keep their fresh values.
    """
    path = find_weights(source)
    _, given = weights_file.load_weights(path)
    own = model.state_dict()
    fitting = {n: t for n, t in given.items() if n in own and own[n].shape == t.shape}
    if not fitting:
        raise ScaeError(
            f"No weights in {path} fit the model to be trained; set training.start_from to the "
            "weights of a model with the same sizes, or leave it out."
        )
    with torch.no_grad():
        for name, tensor in fitting.items():
            own[name].copy_(tensor)
