"""Where a training step spends its time, forward and backward, as a markdown table.

python benchmarks/profile_step.py --preset mnist --threads 1
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from common import Step, arguments
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

import scae.losses
import scae.models.constellation
import scae.models.stacked
from scae.models import CapsuleModel, StackedCapsuleAutoencoder
from scae.presets import preset


def scoped(owner: Any, attribute: str, name: str) -> None:
    """Record the calls of a function under a name."""
    function: Callable[..., Any] = getattr(owner, attribute)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with record_function(f"scope:{name}"):
            return function(*args, **kwargs)

    setattr(owner, attribute, wrapped)


def add_scopes(model: CapsuleModel) -> None:
    """Name the stages of a step."""
    if isinstance(model, StackedCapsuleAutoencoder):
        scoped(model.part_encoder.cnn, "forward", "convolutions")
        scoped(model.part_encoder.pool, "forward", "part pooling")
        scoped(scae.losses, "mean_image_log_likelihood", "renderer")
        scoped(model.object_encoder, "transform", "set transformer")
        scoped(model.object_encoder.pool, "folded", "object pooling")
        scoped(model.object_decoder, "forward", "object decoder")
        scoped(scae.models.stacked, "explain_parts", "mixture")
    else:
        scoped(model.encoder, "forward", "set transformer")
        scoped(model.decoder, "forward", "object decoder")
        scoped(scae.models.constellation, "explain_points", "mixture")


def scope_of(event: FunctionEvent) -> str | None:
    """The innermost scope around an event."""
    above = event
    while above is not None:
        if above.name.startswith("scope:"):
            return above.name.removeprefix("scope:")
        above = above.cpu_parent
    return None


def milliseconds(events: list[FunctionEvent]) -> tuple[Counter[str], Counter[str]]:
    """By stage: forward, and backward by the sequence number that both share."""
    forward: Counter[str] = Counter()
    backward: Counter[str] = Counter()
    stages = {e.sequence_nr: scope_of(e) for e in events if e.sequence_nr >= 0 and scope_of(e)}
    for event in events:
        top = event
        while top.cpu_parent is not None and not top.name.startswith("autograd::engine"):
            top = top.cpu_parent
        if top.name.startswith("autograd::engine"):
            backward[stages.get(top.sequence_nr) or "losses and rest"] += event.self_cpu_time_total
        elif top.name.startswith("Optimizer.step"):
            forward["optimiser"] += event.self_cpu_time_total
        else:
            forward[scope_of(event) or "losses and rest"] += event.self_cpu_time_total
    return forward, backward


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.set_defaults(rounds=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    step = Step(preset(options.preset), options.batch)
    add_scopes(step.model)
    for _ in range(3):
        step()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for _ in range(options.rounds):
            step()
    forward, backward = milliseconds(list(found.events()))
    total = sum(forward.values()) + sum(backward.values())
    print("| stage | forward, ms | backward, ms | share |\n|---|---|---|---|")
    for name, _ in (forward + backward).most_common():
        there, back = (1e-3 * x[name] / options.rounds for x in (forward, backward))
        share = (forward[name] + backward[name]) / total
        print(f"| {name} | {there:.1f} | {back:.1f} | {share:.0%} |")
