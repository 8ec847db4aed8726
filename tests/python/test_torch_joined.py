"""Whether input and target were standardised together."""

from __future__ import annotations

import pytest
import torch

from traindbg.hooks.torch.data.joined import begins_with_last, scaled_with_input

STEPS, WANTED = 24, 6


def windows(values=1, rows=32):
    torch.manual_seed(0)
    return torch.randn(rows, STEPS + WANTED, values).cumsum(1) + 20


def standardised(x, of, eps=0.0):
    return (x - of.mean(1, keepdim=True)) / (of.std(1, keepdim=True) + eps)


def test_windows_that_were_scaled_before_they_were_cut():
    x = windows()
    for scaled in (standardised(x, x), standardised(x, x, 1e-3)):
        given, wanted = scaled[:, :STEPS], scaled[:, STEPS:]
        for one in (given, given[..., 0]):
            for other in (wanted, wanted[..., 0]):
                found = scaled_with_input(one, other)
                assert found is not None
                assert (found.together, found.places) == (1, STEPS + WANTED)
                assert found.alone < 0.1


@pytest.mark.parametrize("channels_first", [False, True])
def test_one_of_several_values(channels_first):
    x = windows(3)
    scaled = standardised(x, x)
    given, wanted = scaled[:, :STEPS], scaled[:, STEPS:]
    assert scaled_with_input(given, wanted[..., 1]).together == 1
    given[..., 0] = torch.randn(32, STEPS)
    for target in (wanted, wanted[..., 2]):
        found = scaled_with_input(
            given.transpose(1, 2) if channels_first else given,
            target.transpose(1, 2) if channels_first and target.dim() == 3 else target,
        )
        assert found.together == 1
        assert found.alone < 0.1


def test_windows_that_were_not():
    x = windows()
    by_context = standardised(x, x[:, :STEPS])
    as_a_whole = (x - x.mean()) / x.std()
    for scaled in (by_context, as_a_whole, x):
        found = scaled_with_input(scaled[:, :STEPS], scaled[:, STEPS:])
        assert found is not None
        assert found.together < 0.1
    own = standardised(x[:, :STEPS], x[:, :STEPS]), standardised(x[:, STEPS:], x[:, STEPS:])
    assert scaled_with_input(*own).alone == 1


def test_what_is_no_series_with_a_target_of_several_values():
    x = windows()[..., 0]
    for labels in (x[:, 0], x[:, :1], x[:8, :4], x[:, :4].long()):
        assert scaled_with_input(x, labels) is None
    assert scaled_with_input(x[:4], x[:4, :4]) is None
    assert scaled_with_input(x.long(), x[:, :4]) is None


def parted(x, given, wanted):
    """Of rows that were standardised as a whole, what is given and what is wanted."""
    scaled = standardised(x, x)
    return scaled_with_input(scaled[:, given], scaled[:, wanted])


def test_a_target_that_does_not_follow_the_input():
    """Masked values, every other one, and parts of a whole are standardised, too, and no series."""
    series = windows()[..., 0]
    assert parted(series, slice(0, STEPS), slice(STEPS, None)).together == 1
    mixed = torch.randperm(STEPS + WANTED, generator=torch.Generator().manual_seed(1))
    assert parted(series, mixed[:STEPS], mixed[STEPS:]).together == 0
    assert parted(series, slice(0, None, 2), slice(1, None, 2)).together == 0
    assert parted(series, slice(WANTED, None), slice(0, WANTED)).together == 0
    shares = torch.randn(32, 3) @ torch.randn(3, 8) + 0.2 * torch.randn(32, 8)
    assert parted(shares, slice(0, 6), slice(6, None)).together == 0


def cut(late=0, values=1):
    x = windows(values)
    return x[:, late : STEPS + late], x[:, STEPS:]


@pytest.mark.parametrize("late", [0, 1])
def test_a_window_that_ends_one_step_late_has_the_first_target(late):
    given, wanted = cut(late)
    for one in (given, given[..., 0]):
        for other in (wanted, wanted[..., 0]):
            found = begins_with_last(one, other)
            assert [each.item() for each in found] == [late, 0, 1 - 1 / 32]


def test_one_of_several_values_is_the_first_target():
    given, wanted = cut(1, 3)
    assert begins_with_last(given, wanted[..., 2]).given == 1
    assert begins_with_last(given, wanted).given == 1
    assert begins_with_last(given.mT, wanted[..., 2]).given == 1


def test_a_target_that_goes_on_in_the_input_is_told_apart():
    x = windows()
    given = x[:, :STEPS]
    for wanted in (given.flip(1)[:, :WANTED], given[:, -1:].expand(-1, WANTED, 1)):
        found = begins_with_last(given, wanted)
        assert found.given == 1
        assert found.again == 1
    assert begins_with_last(given, given[:, 1:]).given == 0
    assert begins_with_last(given, x[:, STEPS : STEPS + 1]) is None  # no second target
    assert begins_with_last(torch.ones(32, 8), torch.ones(32, 3)).changed == 0


def test_what_is_no_series_may_begin_with_the_last_value_given():
    given, wanted = cut(1)
    assert begins_with_last(given[:, -8:], wanted).given == 1
    assert begins_with_last(given[:, -7:], wanted) is None
    features = torch.randn(32, 9)  # in no order of time
    target = torch.cat([features[:, -1:], torch.randn(32, 2)], 1)
    assert begins_with_last(features, target).given == 0
