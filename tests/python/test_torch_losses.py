"""What loss functions are given, compared with what they were given."""

from __future__ import annotations

import pytest
import torch
import trainings
from test_torch_values import check
from torch import nn
from torch.nn import functional as F

import traindbg as td

COLLECTIONS = ("predictions", "labels")


@pytest.fixture(params=["cpu path", "device path"], autouse=True)
def path(request, monkeypatch):
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    return request.param


class Step:
    """A model of one layer, whose output is turned into a loss by a function of the test."""

    def __init__(self, run_dir, **wishes) -> None:
        torch.manual_seed(3)
        self.model = nn.Linear(6, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        wishes = {"collect": COLLECTIONS} | wishes
        self.watcher = td.watch(
            self.model, self.optimizer, run_dir=run_dir, supervise=False, **wishes
        )
        self.run_dir = run_dir

    def take(self, loss) -> torch.Tensor:
        self.optimizer.zero_grad()
        logits = self.model(torch.randn(8, 6))
        loss(logits).backward()
        self.optimizer.step()
        return logits

    def end(self) -> td.Run:
        self.watcher.detach()
        return td.Run(self.run_dir)


def test_integer_labels_of_a_classification(run_dir):
    step = Step(run_dir)
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 2, 2])
    logits = step.take(lambda x: F.cross_entropy(x, labels))
    run = step.end()
    check(run.step(0).tensors["prediction/cross_entropy"].statistics, logits)
    check(run.step(0).tensors["label/cross_entropy"].statistics, labels)
    info = run["label/cross_entropy"].info
    assert (info["role"], info["collection"], info["dtype"]) == ("label", "labels", "int64")
    assert run["prediction/cross_entropy"].info["collection"] == "predictions"


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("mse_loss", lambda x, y: F.mse_loss(x, y, None)),
        ("mse_loss", lambda x, y: F.mse_loss(target=y, input=x)),
        ("mse_loss", lambda x, y: F.mse_loss(x, target=y)),
        ("mse_loss", lambda x, y: F.mse_loss(x, y, reduction="none").mean()),
        ("l1_loss", nn.L1Loss()),
        ("binary_cross_entropy_with_logits", lambda x, y: nn.BCEWithLogitsLoss()(x, y.sigmoid())),
    ],
)
def test_the_arguments_are_found_by_the_signature(run_dir, name, loss):
    step = Step(run_dir)
    targets = torch.randn(8, 3)
    logits = step.take(lambda x: loss(x, targets))
    tensors = step.end().step(0).tensors
    check(tensors[f"prediction/{name}"].statistics, logits)
    check(tensors[f"label/{name}"].statistics, targets.sigmoid() if name[0] == "b" else targets)


def test_losses_with_other_arguments(run_dir):
    step = Step(run_dir)
    signs, other = torch.tensor([1.0, -1.0] * 4), torch.randn(8, 3)
    logits = step.take(
        lambda x: (
            F.cosine_embedding_loss(x, other, signs)
            + F.triplet_margin_loss(x, other, negative=-other)
            + F.ctc_loss(
                x.log_softmax(1)[:, None],
                torch.tensor([[1, 2]]),
                torch.tensor([8]),
                torch.tensor([2]),
            )
        )
    )
    tensors = step.end().step(0).tensors
    check(tensors["prediction/cosine_embedding_loss.input1"].statistics, logits)
    check(tensors["prediction/cosine_embedding_loss.input2"].statistics, other)
    check(tensors["label/cosine_embedding_loss"].statistics, signs)
    check(tensors["prediction/triplet_margin_loss.anchor"].statistics, logits)
    check(tensors["prediction/triplet_margin_loss.negative"].statistics, -other)
    check(tensors["prediction/ctc_loss"].statistics, logits.log_softmax(1))
    check(tensors["label/ctc_loss"].statistics, torch.tensor([[1, 2]]))


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="PyTorch is older")
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_with_the_layer_inside(run_dir, reduction):
    step = Step(run_dir, collect=(*COLLECTIONS, "losses"))
    labels = torch.tensor([0, 1, 2, 3, 4, 1, 2, 2])
    weight = torch.randn(5, 3)
    logits = step.take(lambda x: F.linear_cross_entropy(x, weight, labels, reduction=reduction))
    with torch.no_grad():
        F.linear_cross_entropy(logits, target=labels, linear_weight=weight)
    run = step.end()
    check(run.step(0).tensors["label/linear_cross_entropy"].statistics, labels)
    assert not run.names("^(prediction|label|loss)/(cross_entropy|linear_cross_entropy.)")
    mean = F.cross_entropy(logits @ weight.T, labels).item()
    assert run.scalars("loss/linear_cross_entropy")[1] == pytest.approx([mean])
    assert run.scalars("loss/linear_cross_entropy", "eval")[1] == pytest.approx([mean])


class Distance(nn.Module):
    def forward(self, pair, truth):
        first, second = pair
        return (first - truth).square().mean() + (second - truth).abs().mean()


@pytest.mark.parametrize("by_keyword", [False, True])
def test_a_loss_of_the_users_own(run_dir, by_keyword):
    own = Distance()
    step = Step(run_dir, loss_fn=own)
    truth = torch.randn(8, 3)
    logits = step.take(
        lambda x: own((x, 2 * x), truth=truth) if by_keyword else own((x, 2 * x), truth)
    )
    tensors = step.end().step(0).tensors
    check(tensors["prediction/Distance.0"].statistics, logits)
    check(tensors["prediction/Distance.1"].statistics, 2 * logits)
    check(tensors["label/Distance"].statistics, truth)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_of_a_difference_that_is_given_its_target_first(run_dir, name):
    """As of a temporal difference; an evaluation, in which nothing has a gradient, goes by it."""
    loss = getattr(F, name)
    step = Step(
        run_dir,
        rules=[],
        collect=None,
        capture=[
            {"collection": ["predictions", "labels"], "every": 1},
            {"collection": ["predictions", "labels"], "mode": "eval", "every": 1},
        ],
    )
    target, made = torch.full((8, 3), 7.0), {}

    def turned(x):
        made["prediction"] = x
        return loss(target, x) if name != "l1_loss" else loss(input=target, target=x)

    step.take(turned)
    trained = made["prediction"].detach()
    step.model.eval()
    with torch.no_grad():
        loss(target, step.model(torch.randn(8, 6)))
    step.model.train()
    step.take(lambda x: loss(x, target))  # from now on the usual way
    run = step.end()
    assert run[f"label/{name}"].values("min").tolist() == [7.0, 7.0]
    check(run.step(0).tensors[f"prediction/{name}"].statistics, trained)
    assert run[f"label/{name}"].values("max", mode="eval").tolist() == [7.0]


def test_evaluations_and_steps_that_are_not_due(run_dir):
    step = Step(
        run_dir,
        rules=[],
        collect=None,
        capture=[
            {"collection": ["predictions", "labels"], "every": 2},
            {"collection": ["predictions", "labels"], "mode": "eval", "every": 1},
        ],
    )
    targets = [torch.full((8, 3), float(number)) for number in range(6)]
    for number in range(4):
        step.take(lambda x, number=number: F.mse_loss(x, targets[number]))
    step.model.eval()
    with torch.no_grad():
        for number in (4, 5):
            F.mse_loss(step.model(torch.randn(8, 6)), targets[number])
    run = step.end()
    label = run["label/mse_loss"]
    assert label.steps().tolist() == [0, 2]
    assert label.values("mean").tolist() == [0.0, 2.0]
    assert label.values("mean", mode="eval").tolist() == [4.0, 5.0]
    assert run["prediction/mse_loss"].steps("eval").tolist() == [0, 1]


def test_what_no_loss_function_was_given_is_said(run_dir):
    step = Step(run_dir)
    for _ in range(2):
        step.take(lambda x: x.square().mean())
    events = [event for event in step.end().events if event["kind"] == "not_captured"]
    assert len(events) == 1
    assert "loss functions" in str(events[0])


def test_whole_values_and_histograms(run_dir, path):
    step = Step(run_dir, raw=["labels"], histograms=["predictions"])
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 2, 2])
    step.take(lambda x: F.cross_entropy(x, labels))
    run = step.end()
    if path == "cpu path":
        assert run["label/cross_entropy"].value(0).tolist() == labels.tolist()


def test_a_bad_loss_brings_neither(run_dir):
    """Everything else is kept around a loss that is not finite any more."""
    step = Step(run_dir, collect=None, rules=["non_finite"])
    for number in range(4):
        targets = torch.full((8, 3), float("nan") if number == 1 else 0.0)
        step.take(lambda x, targets=targets: F.mse_loss(x, targets))
    run = step.end()
    assert run.names("^weight/")
    assert not run.names("^(prediction|label|gradient_before|attention)/")


@pytest.mark.parametrize("kind", ["sgd", "eval", "accumulation"])
def test_no_bit_changes(kind, run_dir):
    plain = trainings.train(kind)
    watched = trainings.train(
        kind,
        lambda m, o: td.watch(m, o, run_dir=run_dir, collect=COLLECTIONS, supervise=False),
    )
    assert watched == plain


@pytest.mark.parametrize(
    ("loss", "bend"),
    [
        (nn.SmoothL1Loss(beta=0.1), 0.1),
        (nn.HuberLoss(delta=3.0), 3.0),
        (lambda out, y: F.huber_loss(out, y, "mean", 0.5), 0.5),
        (nn.SmoothL1Loss(), None),
    ],
)
def test_where_a_loss_of_numbers_is_bent(loss, bend, run_dir):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        for _ in range(3):
            optimizer.zero_grad()
            loss(model(torch.randn(8, 3)), torch.randn(8, 1)).backward()
            optimizer.step()
    run = td.Run(run_dir)
    told = [name for name in run.names() if name.startswith("loop/loss_bend")]
    assert [set(run.scalars(name).values.tolist()) for name in told] == ([{bend}] if bend else [])
