"""Groups that two ways of looking agree on."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from scae.training.second_opinion import agreed_groups


def hot(label: torch.Tensor, groups: int = 5) -> torch.Tensor:
    return F.one_hot(label, groups).float()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_numbers_of_groups_do_not_count(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    label = torch.arange(100) % 5
    wrong = torch.randperm(100, generator=draw)[:10]
    other = label.clone()
    other[wrong] = (other[wrong] + 1) % 5
    renamed = [hot(torch.randperm(5, generator=draw)[other]) for _ in range(4)]
    agreed = agreed_groups(hot(label), renamed)
    expected = hot(label)
    expected[wrong] = 0
    assert torch.equal(agreed, expected)


@pytest.mark.parametrize(("same", "known"), [(4, True), (3, True), (2, False), (1, False)])
def test_most_of_the_others_have_to_agree(same: int, known: bool) -> None:
    label = torch.arange(100) % 5
    other = label.clone()
    other[7] = (other[7] + 1) % 5
    agreed = agreed_groups(hot(label), [hot(label)] * same + [hot(other)] * (4 - same))
    assert bool(agreed[7].sum() > 0) is known
    assert torch.equal(agreed[8:], hot(label)[8:])


def test_images_without_a_second_opinion_are_unknown() -> None:
    soft = 0.8 * hot(torch.arange(20) % 5) + 0.04
    agreed = agreed_groups(soft, [soft[:15]])
    assert torch.equal(agreed[:15], hot(torch.arange(15) % 5)) and not agreed[15:].any()
