"""Whether a channel of images or series is the mask that is to be found in them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.data.planes import copied_planes


def pictures(rows: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """RGBA, whose last channel is the mask in other units."""
    torch.manual_seed(0)
    mask = (torch.rand(rows, 1, 12, 12) < 0.3).float()
    colour = torch.randn(rows, 3, 12, 12) + mask
    return torch.cat([colour, 4 * mask - 1], 1), mask


def test_a_channel_that_is_the_mask():
    x, mask = pictures()
    for labels in (mask, mask[:, 0], 1 - mask, mask[:, 0].long(), mask.bool()):
        found = copied_planes(x, labels)
        assert found is not None
        assert [int(value) for value in found] == [1, 3, 3]
    last = copied_planes(x.movedim(1, 3), mask.movedim(1, 3))
    assert last is not None
    assert [int(value) for value in last] == [1, 3, 3]
    series = copied_planes(x.flatten(2).transpose(1, 2), mask.flatten(1))
    assert series is not None
    assert [int(value) for value in series] == [1, 3, 3]
    torch.testing.assert_close(x, pictures()[0])


def test_channels_that_tell_much_or_are_to_be_given_back():
    x, mask = pictures()
    nearly = x.clone()
    nearly[0, 3, 0, 0] += 0.5
    for inputs, labels in ((nearly, mask), (x, x[:, 2]), (x[:, :3], mask), (x, mask * 0)):
        found = copied_planes(inputs, labels)
        assert found is not None
        assert int(found.channels) == 0
    places = torch.linspace(-1, 1, 12).expand(8, 1, 12, 12)
    found = copied_planes(torch.cat([mask, places], 1), mask)
    assert found is not None
    assert int(found.others) == 0  # nothing else differs from picture to picture
    found = copied_planes(mask.expand(-1, 3, -1, -1), mask)
    assert found is not None
    assert (int(found.channels), int(found.others)) == (3, 0)


def test_what_has_no_label_for_each_place_is_not_looked_at():
    x, mask = pictures()
    assert copied_planes(x, mask.mean((1, 2, 3))) is None
    assert copied_planes(x, mask.expand(-1, 2, -1, -1)) is None
    assert copied_planes(x[:, 3:], mask) is None  # one channel
    assert copied_planes(x[:1], mask[:1]) is None
    assert copied_planes(x.long(), mask) is None
    assert copied_planes(x.flatten(1), mask.flatten(1)) is None


@pytest.mark.parametrize("is_given", [True, False])
def test_a_training_on_cut_outs(run_dir, is_given):
    x, mask = pictures()
    x = x if is_given else x[:, :3]
    model = nn.Conv2d(x.shape[1], 1, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["target_leak"]):
        for _ in range(4):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(x), mask).backward()
            optimizer.step()
    run = td.Run(run_dir)
    values = run.scalars("loop/label_in_planes_channels").values.tolist()
    assert set(values) == {float(is_given)}
