"""How well predictions fit the mask of their own picture, beside that of another."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.data.own_labels import share_of_others

SHARE = "loop/own_labels_share"
TWO = "binary_cross_entropy_with_logits"


def masks(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(n, 1, 8, 8, generator=generator) > 0.5).float()


def test_predictions_of_a_picture_fit_its_own_mask_better():
    own = masks(8)
    share = share_of_others(TWO, 6 * own - 3, own, {}, 8)
    assert share is not None
    assert share < 0.1


@pytest.mark.parametrize("name", ["binary_cross_entropy", TWO])
def test_the_mean_of_all_masks_fits_others_as_well(name):
    own = (masks(16) * torch.linspace(0.1, 1, 8) > 0.3).float()  # some columns more than others
    mean = own.mean(0, keepdim=True).clamp(0.01, 0.99).expand_as(own)
    share = share_of_others(name, mean.logit() if name == TWO else mean, own, {}, 16)
    assert share is not None
    assert math.isclose(share, 1, rel_tol=0.05)


def test_the_losses_are_those_of_pytorch():
    own, scores = masks(8), torch.randn(8, 1, 8, 8)
    others = own.roll(4, 0)
    expected = F.binary_cross_entropy_with_logits(scores, own) / (
        F.binary_cross_entropy_with_logits(scores, others)
    )
    torch.testing.assert_close(share_of_others(TWO, scores, own, {}, 8), expected)
    expected = F.binary_cross_entropy(scores.sigmoid(), own) / (
        F.binary_cross_entropy(scores.sigmoid(), others)
    )
    found = share_of_others("binary_cross_entropy", scores.sigmoid(), own, {}, 8)
    torch.testing.assert_close(found, expected)
    classes, scores = (4 * torch.rand(8, 8, 8)).long(), torch.randn(8, 4, 8, 8)
    classes[:, 0] = 3
    settings = {"ignore_index": 3}
    expected = F.cross_entropy(scores, classes, **settings) / (
        F.cross_entropy(scores, classes.roll(4, 0), **settings)
    )
    found = share_of_others("cross_entropy", scores, classes, settings, 8)
    torch.testing.assert_close(found, expected)


def test_a_model_that_has_learned_much_is_not_at_the_mean_of_a_film():
    own = masks(1).expand(8, 1, 8, 8).clone()
    own[:, :, 0, :4] = torch.arange(8).ge(4).float().view(8, 1, 1)  # hardly unlike each other
    share = share_of_others(TWO, 8 * own - 4, own, {}, 8)
    assert share is not None
    assert share < 0.1


def test_masks_that_are_alike_say_nothing():
    own = masks(1).expand(8, 1, 8, 8)
    share = share_of_others(TWO, torch.randn(8, 1, 8, 8), own, {}, 8)
    assert share is not None
    assert share.isnan()


def test_numbers_are_no_masks():
    share = share_of_others(TWO, torch.randn(8, 1, 8, 8), torch.rand(8, 1, 8, 8), {}, 8)
    assert share is not None
    assert share.isnan()


def test_of_very_many_scores_some_are_looked_at():
    classes = torch.randint(0, 600, (4, 64, 64))
    scores = torch.randn(4, 600, 64, 64, dtype=torch.bfloat16)
    share = share_of_others("cross_entropy", scores, classes, {}, 4)
    assert share is not None
    assert 0.5 < share < 2


LOGITS, MASK = torch.randn(8, 1, 8, 8), masks(8)


@pytest.mark.parametrize(
    ("name", "predicted", "labels", "settings", "rows"),
    [
        ("mse_loss", LOGITS, MASK, {}, 8),
        (TWO, LOGITS, MASK, {"pos_weight": torch.tensor(3.0)}, 8),
        (TWO, LOGITS, MASK, {"weight": torch.ones(8, 8)}, 8),
        (TWO, LOGITS, MASK, {}, 4),  # of two pictures each, say
        (TWO, LOGITS[:3], MASK[:3], {}, 3),
        (TWO, LOGITS[..., :7, :7], MASK[..., :7, :7], {}, 8),
        (TWO, LOGITS, MASK.squeeze(1), {}, 8),
        (TWO, torch.randn(8, 64), torch.ones(8, 64), {}, 8),
        ("cross_entropy", torch.randn(8, 4, 64), torch.zeros(8, 64).long(), {}, 8),  # of tokens
        ("cross_entropy", torch.randn(8, 4, 8, 8), torch.rand(8, 4, 8, 8), {}, 8),
        (TWO, [1], MASK, {}, 8),
        (TWO, LOGITS.to("meta"), MASK.to("meta"), {}, 8),
    ],
)
def test_other_losses_are_not_compared(name, predicted, labels, settings, rows):
    assert share_of_others(name, predicted, labels, settings, rows) is None


def fit(run_dir, loss_of, watch=True, steps=80):
    torch.manual_seed(2)
    model = nn.Conv2d(1, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    watcher = None
    if watch:
        watcher = td.watch(
            model, optimizer, run_dir=run_dir, supervise=False, rules=["labels_of_others"]
        )
    losses = []
    for step in range(steps):
        own = masks(8, step)
        loss = loss_of(model(own + 0.3 * torch.randn(own.shape)), own)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, losses)


@pytest.mark.parametrize("loss_of", [nn.BCEWithLogitsLoss(), F.binary_cross_entropy_with_logits])
def test_it_is_told_from_the_fiftieth_step_on_and_changes_nothing(run_dir, loss_of):
    assert fit(run_dir, loss_of) == fit(None, loss_of, watch=False)
    run = td.Run(run_dir)
    steps, values = run.scalars(SHARE)
    assert steps.tolist() == [50, 75]
    assert max(values) < 0.8
    assert len(run.steps("eval")) == 0  # what is computed for it is no loss of the training's


def test_a_loss_with_weights_is_not_compared(run_dir):
    fit(run_dir, nn.BCEWithLogitsLoss(weight=torch.ones(8, 8)), steps=60)
    assert SHARE not in td.Run(run_dir).names()
