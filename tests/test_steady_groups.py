"""Groups that hold when images move, and how a training finds and keeps them."""

import inspect
import signal
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from scae.arrangements import Arrangements, fit_arrangements
from scae.config import LossWeights
from scae.data.interface import ImageSource
from scae.edges import edge_histograms
from scae.errors import ScaeError
from scae.jitter import draw_moves, jitter, move
from scae.models import build
from scae.training import guidance, read_table, steady_groups
from scae.training.checkpoints import CheckpointStore, read_checkpoint
from scae.training.edge_groups import fit_edge_groups
from scae.training.fixed_parts import encode
from scae.training.guidance import check_guidance, find_groups, groups_from
from scae.training.module import TrainingModule
from scae.training.signals import StopRequest
from scae.training.steady_groups import Batches, SteadyGroups, fit_steady_groups
from scae.training.step_seed import step_seed
from training_runs import guided_experiment, image_data, run, source_of, weights_of

SIZE = 25


def bars(images: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Upright and lying bars, which of the two each is, and where it is across."""
    draw = torch.Generator().manual_seed(seed)
    label = torch.arange(images) % 2
    place = torch.randint(3, 9, (images,), generator=draw)
    image = 0.1 * torch.rand(images, 1, 12, 12, generator=draw)
    for row in range(images):
        across = slice(int(place[row]), int(place[row]) + 1)
        where = (slice(2, 10), across) if label[row] else (across, slice(2, 10))
        image[row, 0, where[0], where[1]] = 1.0
    return image, label, place


def batches(image: torch.Tensor) -> Batches:
    return Batches(
        len(image) // SIZE, SIZE, lambda i: image[i * SIZE : (i + 1) * SIZE], lambda x: x
    )


def accuracy(steady: SteadyGroups, image: torch.Tensor, label: torch.Tensor) -> float:
    return float((steady.groups(image).argmax(1) == label).float().mean())


def hot(label: torch.Tensor, groups: int = 2) -> torch.Tensor:
    return F.one_hot(label, groups).float()


def test_groups_wrong_in_what_moves_are_put_right() -> None:
    image, label, place = bars(600)
    wrong = torch.where(place == 5, 1 - label, label)  # wrong by where it is, not by what it is
    assert 0.75 < float((wrong == label).float().mean()) < 0.9
    fresh, truth, _ = bars(400, seed=1)
    moved = fit_steady_groups(batches(image), hot(wrong), strength=3.0)
    assert accuracy(moved, fresh, truth) > 0.97
    # Without moves nothing says that this border is arbitrary.
    still = fit_steady_groups(batches(image), hot(wrong), strength=0.0)
    assert accuracy(still, fresh, truth) < 0.93


def test_the_same_seed_finds_the_same_groups_and_leaves_the_generator_alone(monkeypatch) -> None:
    monkeypatch.setattr(steady_groups, "TRUSTING", 2)
    image, label, _ = bars(50)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()

    def found(seed: int) -> dict[str, torch.Tensor]:
        return fit_steady_groups(batches(image), hot(label), 1.0, seed, (0.0,)).tensors()

    first, second = found(2), found(2)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = found(3)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 40, 28)])
def test_groups_are_probabilities_of_images_of_any_size(shape: tuple[int, int, int]) -> None:
    draw = torch.Generator().manual_seed(0)
    steady = SteadyGroups.start(shape[0], 4, draw)
    groups = steady.groups(torch.rand(6, *shape, generator=draw))
    torch.testing.assert_close(groups.sum(1), torch.ones(6))
    again = groups_from(dict(steady.tensors()))
    assert isinstance(again, SteadyGroups)
    assert not any(tensor.requires_grad for tensor in again.tensors().values())


@pytest.mark.parametrize("side", [2, 7, 8, 10, 32])
def test_places_are_adaptive_average_pooling(side: int) -> None:
    x = torch.rand(2, 3, side, side + 1, generator=torch.Generator().manual_seed(0))
    rows, columns = steady_groups._places(side, x), steady_groups._places(side + 1, x)
    pooled = torch.einsum("ph,bchw,qw->bcpq", rows, x, columns)
    torch.testing.assert_close(pooled, F.adaptive_avg_pool2d(x, steady_groups.PLACES))


def test_large_batches_of_a_training_are_divided(monkeypatch) -> None:
    monkeypatch.setattr(steady_groups, "TRUSTING", 1)
    sizes = []
    logits = SteadyGroups.logits
    monkeypatch.setattr(
        SteadyGroups, "logits", lambda self, x, p=0.0: sizes.append(len(x)) or logits(self, x, p)
    )
    image, label, _ = bars(300)
    fit_steady_groups(Batches(1, 300, lambda _: image, lambda x: x), hot(label), 1.0, sureness=())
    assert sizes == [128, 128, 44]


def test_a_stop_ends_the_search_and_keeps_the_steps(tmp_path) -> None:
    """Asked while groups are found, which takes minutes: parts are saved and go on from there."""
    experiment = guided_experiment(steps=20, part_share=0.35, checkpoint_every=100)

    class Stopping(ImageSource):
        asked = False

        def batch(self, step, size, rank=0, world=1):
            caller = inspect.stack()[1].function
            if caller == "read" and not self.asked:
                self.asked = True
                signal.raise_signal(signal.SIGTERM)
            return super().batch(step, size, rank, world)

    with pytest.raises(SystemExit) as stopped:
        run(experiment, tmp_path, source=Stopping(image_data(), experiment.training.seed))
    assert stopped.value.code == 143
    assert read_checkpoint(CheckpointStore(tmp_path / "checkpoints", 2).paths()[-1]).step == 7
    plain = ImageSource(image_data(), experiment.training.seed)
    run(experiment, tmp_path, source=plain, resume=True)
    run(experiment, tmp_path / "whole", source=plain)
    assert weights_of(tmp_path) == weights_of(tmp_path / "whole")
    steps = read_table(tmp_path / "metrics.csv")["step"]
    assert len(set(steps)) == len(steps)


def test_a_group_is_not_left_to_die_out() -> None:
    """One image in thirty of a kind of its own, which nothing in it shows."""
    image, label, _ = bars(300)
    told = hot(torch.where(torch.arange(300) % 30 == 0, 2, label), 3)
    steady = fit_steady_groups(batches(image), told, strength=1.0)
    assert (steady.groups(image).argmax(1) == 2).float().mean() < 0.5 / 3
    kept = steady_groups._agreed(
        steady, batches(image), told.view(-1, SIZE, 3), 1.0, 0.0, torch.Generator()
    )
    assert torch.equal(kept.flatten(0, 1), told)


def test_groups_that_are_not_finite_are_refused() -> None:
    image, label, _ = bars(50)
    told = hot(label)
    told[3, 1] = float("nan")
    with pytest.raises(ScaeError, match=r"not finite.* lower optimizer\.lr"):
        fit_steady_groups(batches(image), told, 1.0)


@pytest.mark.parametrize("kind", ["poses", "edges", "both"])
def test_jitter_decides_which_groups_guide(kind, monkeypatch) -> None:
    seen = []

    def fit(batches, groups, strength, seed, sureness):
        seen.append((batches, groups, sureness))
        return fit_steady_groups(batches, groups, strength, seed, sureness[-1:])

    monkeypatch.setattr(guidance, "fit_steady_groups", fit)
    experiment = guided_experiment(groups=kind)
    experiment = replace(experiment, model=replace(experiment.model, target="sobel"))
    torch.manual_seed(0)
    model, source = build(experiment.model), ImageSource(image_data(), seed=0)
    steady = find_groups(model, experiment, source)
    assert isinstance(steady, SteadyGroups) and model.training
    [(batches, start, sureness)] = seen
    size = experiment.training.batch
    images = torch.cat([source.batch(step, size)[0] for step in range(40 // size)])
    torch.testing.assert_close(torch.cat([batches.read(i) for i in range(batches.count)]), images)
    torch.testing.assert_close(batches.look(images), model.target(images))
    assert sureness == (
        steady_groups.ALL_AT_ONCE if kind == "edges" else steady_groups.SUREST_FIRST
    )
    by_edges = None
    if kind != "poses":
        draw = torch.Generator().manual_seed(experiment.training.seed)
        views = []
        for image in images.split(size):
            moved = [jitter(image, 1.0, draw) for _ in range(guidance.MOVES)]
            views.append(torch.stack([edge_histograms(x) for x in (image, *moved)]))
        by_edges = fit_edge_groups(torch.cat(views, 1), 4, experiment.training.seed)
    if kind == "edges":
        assert torch.equal(start, by_edges)
        return
    with torch.no_grad():
        parts = model.eval().part_encoder(images)
    found = fit_arrangements(
        parts.pose, parts.presence, 4, experiment.training.seed, begin_with=by_edges
    )
    torch.testing.assert_close(start, found.groups_of(images, parts))


def test_without_jitter_arrangements_guide() -> None:
    model, source = build(guided_experiment().model), ImageSource(image_data(), seed=0)
    assert isinstance(find_groups(model, guided_experiment(jitter=0.0), source), Arrangements)


def test_images_of_unknown_group_are_not_learned_from() -> None:
    """A third of the images, told the other group, would mislead; told none, they do not."""
    image, label, _ = bars(300)
    unknown = torch.arange(300) % 3 == 0
    fresh, truth, _ = bars(200, seed=1)
    told = hot(label) * ~unknown[:, None]
    sizes = []
    source = batches(image)
    steady = fit_steady_groups(
        replace(source, look=lambda x: sizes.append(len(x)) or x), told, 1.0, sureness=()
    )
    assert accuracy(steady, fresh, truth) > 0.97
    assert sum(sizes[1:]) == steady_groups.TRUSTING * 200


def test_only_sure_answers_are_told() -> None:
    image, label, _ = bars(100)
    steady = fit_steady_groups(batches(image), hot(label), 1.0, sureness=())
    told, draw = hot(label).view(-1, SIZE, 2), torch.Generator()
    shares = steady.groups(image)
    middle = float(shares.amax(1).sort().values[49:51].mean())  # between two, whatever is rounded
    kept = steady_groups._agreed(steady, batches(image), told, 0.0, middle, draw).flatten(0, 1)
    assert torch.equal(kept.sum(1) > 0, shares.amax(1) >= middle)
    assert torch.equal(kept.argmax(1)[kept.sum(1) > 0], shares.argmax(1)[kept.sum(1) > 0])


def test_groups_look_at_what_is_reconstructed(monkeypatch) -> None:
    """Sobel edges, where those are the target: light and colour do not count there."""
    monkeypatch.setattr(steady_groups, "TRUSTING", 1)
    experiment = guided_experiment()
    experiment = replace(experiment, model=replace(experiment.model, target="sobel"))
    model, source = build(experiment.model), source_of(experiment)
    [image] = source.batch(0, 8)
    steady = find_groups(model, experiment, source)
    seen = []
    monkeypatch.setattr(
        SteadyGroups, "groups", lambda self, x: seen.append(x) or hot(x[:, 0, 0, 0].long(), 4)
    )
    encode(model, image, steady)
    torch.testing.assert_close(seen[0], model.target(image))


@pytest.mark.parametrize("size", [(40, 64), (24, 50), (33, 32), (32, 32), (8, 12)])
def test_large_pictures_are_looked_at_smaller(size: tuple[int, int]) -> None:
    groups = SteadyGroups.start(3, 4, torch.Generator().manual_seed(0))
    picture = torch.rand(5, 3, *size, generator=torch.Generator().manual_seed(1))
    height, width = (min(side, steady_groups.MOST_SIDE) for side in size)
    smaller = F.interpolate(picture, (height, width), mode="bilinear", antialias=True)
    torch.testing.assert_close(groups.logits(picture), groups.logits(smaller), rtol=1e-4, atol=1e-4)
    if size == (height, width):
        assert torch.equal(smaller, picture)


def test_joint_steps_move_images_and_want_the_groups_of_the_unmoved() -> None:
    experiment = guided_experiment(part_share=0.0, object_share=0.5, steps=4)
    model, source = build(experiment.model), source_of(experiment)
    module = TrainingModule(model, experiment, source, StopRequest())
    groups = SteadyGroups.start(1, 4, torch.Generator().manual_seed(0))
    module.guide.load(groups)
    [image] = source.batch(3, experiment.training.batch)
    moved, target, wanted = module.guide.moved(image, step=3)
    draw = torch.Generator().manual_seed(step_seed(experiment.training.seed, 3, "moves"))
    torch.testing.assert_close(moved, move(image, draw_moves(len(image), 1.0, draw)))
    torch.testing.assert_close(target, moved)
    torch.testing.assert_close(wanted, groups.groups(image))
    plain, guided = model.eval().loss_terms(moved), model.loss_terms(moved, target, wanted)
    assert plain.guidance.item() == 0 and guided.guidance.item() > 0
    torch.testing.assert_close(plain.total(LossWeights()), guided.total(LossWeights()))
    # Unlike on fixed parts, special features learn from what objects are told.
    guided.guidance.backward()
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in model.part_parameters())


def test_guidance_goes_on_in_joint_steps(tmp_path) -> None:
    run(guided_experiment(steps=20), tmp_path)
    table = read_table(tmp_path / "metrics.csv")
    by_step = dict(zip(table["step"], table["guidance"], strict=True))
    assert by_step[8] == 0 and by_step[10] > 0 and by_step[18] > 0


def test_checkpoints_have_the_groups(tmp_path) -> None:
    experiment = guided_experiment(steps=10, checkpoint_every=10, object_share=0.6)
    run(experiment, tmp_path)
    tensors = read_checkpoint(CheckpointStore(tmp_path / "checkpoints", 2).paths()[-1]).tensors
    kept = groups_from({n[7:]: t for n, t in tensors.items() if n.startswith("groups.")})
    # Parts stay as they are while objects learn, so the groups can be found again.
    model = build(experiment.model)
    model.load_state_dict({n[6:]: t for n, t in tensors.items() if n.startswith("model.")})
    found = find_groups(model, experiment, source_of(experiment))
    for name, tensor in found.tensors().items():
        torch.testing.assert_close(kept.tensors()[name], tensor)


@pytest.mark.parametrize("strength", [-1.0, 3.1, float("nan")])
def test_a_jitter_out_of_range_is_refused(strength: float) -> None:
    guided = guided_experiment(jitter=strength)
    with pytest.raises(ScaeError, match=r"training\.jitter is .* 0 to 3"):
        check_guidance(guided)


def test_jitter_without_guidance_is_refused() -> None:
    with pytest.raises(ScaeError, match=r"training\.jitter is 1\.0 but loss\.guidance is 0"):
        check_guidance(replace(guided_experiment(), loss=LossWeights()))


@pytest.mark.parametrize("kind", ["edges", "both"])
def test_edges_without_jitter_are_refused(kind: str) -> None:
    with pytest.raises(ScaeError, match=rf"training\.groups is {kind} but training\.jitter is 0"):
        check_guidance(guided_experiment(groups=kind, jitter=0.0))
