"""What objects are given while they learn: fixed parts, and the groups of images to follow."""

import contextlib

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from scae.config import Experiment
from scae.data.interface import ImageSource, Source, rows_of
from scae.distributed import rank, world
from scae.groups import Groups, Weights, no_tick
from scae.jitter import draw_moves, move
from scae.models import CapsuleModel, StackedCapsuleAutoencoder
from scae.parts import PartCapsules
from scae.training.fixed_parts import FixedParts, encode, encode_all, is_worth_it
from scae.training.framing import frame_of
from scae.training.guidance import check_guidance, find_groups
from scae.training.signals import StopRequest
from scae.training.stages import stage_at
from scae.training.steady_groups import SteadyGroups
from scae.training.step_seed import step_seed

MOVES = "moves"
"""What the moves of a step's images are drawn for, apart from its noise."""

Image = Float[Tensor, "batch channels height width"]


class PreparationStoppedError(Exception):
    """Whoever trains asked to stop while the object stage was being prepared."""


class Guide:
    """Groups and parts of images, found when the first step comes that needs them."""

    def __init__(
        self, model: CapsuleModel, experiment: Experiment, source: Source, stop: StopRequest
    ) -> None:
        check_guidance(experiment)
        self._model, self._experiment, self._source = model, experiment, source
        self._stop = stop
        self._frame = frame_of(source)
        self._fixed: FixedParts | None = None
        self.groups: Groups | None = None

    def load(self, groups: Groups | None) -> None:
        """Go on with the groups of a checkpoint, and with the parts as they are there."""
        self.groups, self._fixed = groups, None

    def lacks_groups(self, step: int) -> bool:
        """Whether groups have to be found before a step, which takes minutes."""
        guided = self._in_objects(step) and self._experiment.loss.guidance > 0
        return guided and self.groups is None

    def lacks_parts(self, step: int) -> bool:
        """Whether all images are to be encoded before a step."""
        config = self._experiment.training
        if self._fixed is not None or not self._in_objects(step):
            return False
        assert isinstance(self._model, StackedCapsuleAutoencoder)
        seen = stage_at(config, step).length * config.batch
        return is_worth_it(self._source, self._model.config, seen)

    def knows_parts(self, step: int) -> bool:
        """Whether a step needs no images."""
        return self._fixed is not None and self._in_objects(step)

    def prepare(self, step: int) -> None:
        """Find what a step needs; an error if asked to stop meanwhile."""
        if self.lacks_groups(step):
            self.groups = self._find_groups()
        if self.lacks_parts(step):
            assert isinstance(self._model, StackedCapsuleAutoencoder)
            assert isinstance(self._source, ImageSource)
            # Several processes stop together, after a step.
            tick = self._tick if world() == 1 else no_tick
            self._fixed = encode_all(self._model, self._source, self.groups, tick)
        if not self._in_objects(step):
            self._fixed = None

    def known(self, step: int) -> tuple[PartCapsules, Weights | None]:
        """Parts and wanted groups of a step that needs no images."""
        assert self._fixed is not None
        return self._fixed.at(step, self._experiment.training.batch)

    def encoded(self, image: Image) -> tuple[PartCapsules, Weights | None]:
        """Parts and wanted groups of images."""
        assert isinstance(self._model, StackedCapsuleAutoencoder)
        return encode(self._model, image, self.groups, self._frame)

    @torch.no_grad()
    def moved(self, image: Image, step: int) -> tuple[Image, Image, Weights] | tuple[Image]:
        """Images moved, what to reconstruct of them, and the groups of the unmoved ones.

        Special features learn from objects again; groups hold because no part decides them.
        Where parts do, images are as they were.
        """
        if not isinstance(self.groups, SteadyGroups):
            return (image,)
        assert isinstance(self._model, StackedCapsuleAutoencoder)
        config, target = self._experiment.training, self._model.target
        draw = torch.Generator().manual_seed(step_seed(config.seed, step, MOVES))
        moves = draw_moves(config.batch, config.jitter, draw)[
            rows_of(config.batch, rank(), world())
        ]
        with torch.autocast(image.device.type, enabled=False):
            moved = move(image, moves)
            return moved, target(moved), self.groups.groups(target(self._frame(image)))

    def _in_objects(self, step: int) -> bool:
        return stage_at(self._experiment.training, step).name == "objects"

    def _find_groups(self) -> Groups:
        """Found by one process, so that all have the same to the last bit."""
        assert isinstance(self._model, StackedCapsuleAutoencoder)
        found: list[Groups | None] = [None]
        if rank() == 0:
            with contextlib.suppress(PreparationStoppedError):
                groups = find_groups(self._model, self._experiment, self._source, self._tick)
                found = [groups.to(torch.device("cpu"))]  # each process has a device of its own
        if world() > 1:
            dist.broadcast_object_list(found)
        [told] = found
        if told is None:
            raise PreparationStoppedError
        return told.to(next(self._model.parameters()).device)

    def _tick(self) -> None:
        if self._stop.signal is not None:
            raise PreparationStoppedError
