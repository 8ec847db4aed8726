"""Evaluations that compute no loss, only how often the model is right or how far it is off."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules import module as modules

import traindbg as td

X = torch.randn(96, 6, generator=torch.Generator().manual_seed(1))
CLASSES = (X[:, 0] > 0).long() + (X[:, 1] > 0.5).long()
YES = (X[:, :1] > 0).float()
NUMBERS = X[:, :1] * 2 + 1
BATCHES = 3  # of an evaluation
METHODS = ("__eq__", "__ne__", "eq", "ne", "__sub__", "__rsub__", "sub")


def hits(output, y):
    return (output.argmax(1) == y).sum().item()


def train(run_dir, loss, y, evaluated, *, outputs=3, epochs=4, seen=None, last=None, watch=True):
    """Trains, and evaluates by `evaluated(output, y)` after each epoch.

    Returns the weights at the end, and of each evaluated batch the loss that it would have. `seen`
    is called with the model after each evaluation; `last` is the model's last layer.
    """
    torch.manual_seed(0)
    layers = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, outputs), *([last] if last else [])]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected = []
    watcher = (
        td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["overfit"])
        if watch
        else None
    )
    for epoch in range(epochs):
        model.train()
        for x, t in zip(X.split(32), y.split(32), strict=True):
            optimizer.zero_grad()
            loss(model(x), t).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, t in zip(X.split(32), y.split(32), strict=True):
                output = model(x)
                evaluated(output, t)
                if epoch > 0:
                    expected.append(copy.deepcopy((output, t)))
        if seen is not None:
            seen(model)
    if watcher is not None:
        watcher.detach()
    return [p.detach().clone() for p in model.parameters()], expected


def losses(run_dir, function):
    run = td.Run(run_dir)
    if f"loss/{function}" not in run.names():
        return []
    return list(run.scalars(f"loss/{function}", "eval")[1])


CASES = {
    "equal": ("cross_entropy", CLASSES, 3, lambda o, y: (o.argmax(1) == y).sum()),
    "not_equal": ("cross_entropy", CLASSES, 3, lambda o, y: (y != o.max(1)[1]).float().mean()),
    "method": ("cross_entropy", CLASSES, 3, lambda o, y: o.topk(1)[1].flatten().eq(y).sum()),
    "column": (
        "cross_entropy",
        CLASSES,
        3,
        lambda o, y: (pred := o.argmax(1, keepdim=True)).eq(y.view_as(pred)).sum(),
    ),
    "softmax": ("cross_entropy", CLASSES, 3, lambda o, y: (o.softmax(1).argmax(1) == y).sum()),
    "sign": (
        "binary_cross_entropy_with_logits",
        YES,
        1,
        lambda o, y: ((o.sigmoid() > 0.5) == y.bool()).sum(),
    ),
    "rounded": (
        "binary_cross_entropy_with_logits",
        YES,
        1,
        lambda o, y: (o.squeeze(1).sigmoid().round() == y.squeeze(1)).sum(),
    ),
    "distance": ("l1_loss", NUMBERS, 1, lambda o, y: (o - y).abs().mean()),
    "squares": ("mse_loss", NUMBERS, 1, lambda o, y: ((y.squeeze(1) - o.squeeze(1)) ** 2).mean()),
}


@pytest.mark.parametrize("case", CASES)
def test_the_loss_is_computed_of_what_is_compared(case, tmp_path):
    function, y, outputs, evaluated = CASES[case]
    loss = getattr(F, function)
    _, expected = train(tmp_path / "run", loss, y, evaluated, outputs=outputs)
    found = losses(tmp_path / "run", function)
    assert len(found) == 3 * BATCHES  # of all but the first evaluation
    assert found == pytest.approx([loss(*each).item() for each in expected], rel=1e-5)


def test_a_probability_is_compared_with_a_half(tmp_path):
    evaluated = lambda o, y: ((o > 0.5).float() == y).sum()  # noqa: E731
    loss = F.binary_cross_entropy
    _, expected = train(tmp_path / "run", loss, YES, evaluated, outputs=1, last=nn.Sigmoid())
    found = losses(tmp_path / "run", "binary_cross_entropy")
    assert found == pytest.approx([loss(*each).item() for each in expected], rel=1e-5)


def test_classes_are_counted(tmp_path):
    run_dir = tmp_path / "run"
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["label_noise"]):
        for _ in range(3):
            F.cross_entropy(model(X), CLASSES).backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                right = hits(model(X), CLASSES)
    run = td.Run(run_dir)
    counted = run.step(run.steps("eval")[-1], "eval").classes["classes/cross_entropy"]
    assert list(counted.labels) == torch.bincount(CLASSES).tolist()
    assert sum(counted.hits) == right


def test_settings_of_the_training_count(tmp_path):
    weight = torch.tensor([1.0, 2.0, 5.0])
    loss = nn.CrossEntropyLoss(weight=weight, label_smoothing=0.2)
    _, expected = train(tmp_path / "run", loss, CLASSES, hits)
    found = losses(tmp_path / "run", "cross_entropy")
    assert found == pytest.approx([loss(*each).item() for each in expected], rel=1e-5)


def test_a_sum_of_the_training_says_nothing_of_a_batch(tmp_path):
    loss = nn.CrossEntropyLoss(reduction="sum")
    train(tmp_path / "run", loss, CLASSES, hits)
    assert losses(tmp_path / "run", "cross_entropy") == []


def test_what_the_program_computes_is_recorded_alone(tmp_path):
    def evaluated(output, y):
        hits(output, y)
        F.cross_entropy(output, y)

    train(tmp_path / "run", F.cross_entropy, CLASSES, evaluated)
    assert len(losses(tmp_path / "run", "cross_entropy")) == 4 * BATCHES


def test_another_loss_of_the_program_is_recorded_alone(tmp_path):
    def evaluated(output, y):
        hits(output, y)
        F.nll_loss(output.log_softmax(1), y)

    train(tmp_path / "run", F.cross_entropy, CLASSES, evaluated)
    assert losses(tmp_path / "run", "cross_entropy") == []
    assert len(losses(tmp_path / "run", "nll_loss")) == 4 * BATCHES


@pytest.mark.parametrize(
    "evaluated",
    [
        lambda output, y: (output.argmax(1) == 2).sum(),  # a number
        lambda output, y: (y == y.flip(0)).sum(),  # nothing that the output says
        lambda output, y: (output == output.max(1, keepdim=True)[0]).sum(),
        lambda output, y: (output.argmax(1) == y.double()).sum(),
    ],
    ids=["number", "labels", "scores", "doubles"],
)
def test_other_comparisons_say_nothing(evaluated, tmp_path):
    train(tmp_path / "run", F.cross_entropy, CLASSES, evaluated)
    assert losses(tmp_path / "run", "cross_entropy") == []


def test_probabilities_are_not_what_the_loss_is_given(tmp_path):
    class InEvaluation(nn.Module):
        def forward(self, x):
            return x if self.training else x.softmax(1)

    train(tmp_path / "run", F.cross_entropy, CLASSES, hits, last=InEvaluation())
    assert losses(tmp_path / "run", "cross_entropy") == []


def methods():
    return {name: torch.Tensor.__dict__.get(name) for name in METHODS}


def hooks():
    return dict(modules._global_forward_hooks)


def test_nothing_stays_in_a_training(tmp_path):
    methods_before, hooks_before = methods(), hooks()
    inside, in_training = [], []

    def evaluated(output, y):
        hits(output, y)
        inside.append(methods() != methods_before)

    class Looks(nn.Module):
        def forward(self, x):
            return x

    def loss(output, y):
        in_training.append(methods() == methods_before)
        return F.cross_entropy(output, y)

    train(tmp_path / "run", loss, CLASSES, evaluated)
    assert all(inside)
    assert all(in_training)
    assert methods() == methods_before
    assert hooks() == hooks_before


def test_a_model_is_copied_and_kept_as_ever(tmp_path):
    def seen(model):
        assert not copy.deepcopy(model)[0]._forward_hooks
        pickle.loads(pickle.dumps(model))

    train(tmp_path / "run", F.cross_entropy, CLASSES, hits, seen=seen)
    assert len(losses(tmp_path / "run", "cross_entropy")) == 3 * BATCHES


def test_the_training_is_the_same_bit_for_bit(tmp_path):
    told = ([], [])

    def run(watch, numbers):
        def evaluated(output, y):
            numbers.append((hits(output, y), torch.rand(1).item()))

        loss = F.cross_entropy
        return train(tmp_path / "run", loss, CLASSES, evaluated, watch=watch)[0]

    weights = run(False, told[0]), run(True, told[1])
    assert told[0] == told[1]
    assert all(map(torch.equal, *weights))
    assert len(losses(tmp_path / "run", "cross_entropy")) == 3 * BATCHES


def test_gradients_that_are_switched_off_at_each_step_are_given_up(tmp_path, monkeypatch):
    from traindbg.hooks import torch_comparisons

    monkeypatch.setattr(torch_comparisons, "_MOST_IN_VAIN", 5)
    attached = []
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = len(hooks())
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        for _ in range(20):
            output = model(X)
            F.cross_entropy(output, CLASSES).backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                hits(output, CLASSES)
                ours = [hook for hook in hooks().values() if "_hear" in repr(hook)]
                attached.append(len(ours))
    assert attached[1:5] == [1] * 4
    assert not any(attached[8:])
    assert len(hooks()) == before
    assert losses(tmp_path / "run", "cross_entropy") == []


def test_comparisons_under_vmap_are_left_alone(tmp_path):
    def evaluated(output, y):
        torch.func.vmap(lambda o, t: o.argmax(0) == t)(output, y)
        hits(output, y)

    train(tmp_path / "run", F.cross_entropy, CLASSES, evaluated)
    assert len(losses(tmp_path / "run", "cross_entropy")) == 3 * BATCHES


def test_each_of_two_trainings_has_its_own_loss(tmp_path):
    """The second one, in the same process, is about another loss."""
    run_dir = tmp_path / "run"
    torch.manual_seed(0)
    first, second = nn.Linear(6, 3), nn.Linear(6, 1)
    with td.watch(first, run_dir=run_dir, supervise=False, rules=["overfit"]):
        td.watch(second)
        for model, loss, y, evaluated in (
            (first, F.cross_entropy, CLASSES, hits),
            (second, F.mse_loss, NUMBERS, lambda o, t: (o - t).abs().mean()),
        ):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            for _ in range(30):
                optimizer.zero_grad()
                loss(model(X), y).backward()
                optimizer.step()
                with torch.no_grad():
                    evaluated(model(X), y)
    assert len(losses(run_dir, "cross_entropy")) == 29
    assert len(losses(run_dir, "mse_loss")) > 20
