"""Operations that may make NaN are told, safe forms of them not; the training is the same."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td

WIDTH, CLASSES = 6, 4


class Model(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.scale = Scale(inside)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(self.scale(self.first(x)))


class Scale(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, h):
        return self.inside(h)


def with_norm_by_hand(h):
    return h / h.square().sum(1, keepdim=True).sqrt()


def min_max(h):
    low, high = h.amin(1, keepdim=True), h.amax(1, keepdim=True)
    return (h - low) / (high - low)


def with_zeros_replaced(h):
    length = h.detach().norm(dim=1, keepdim=True)
    length[length == 0] = 1
    return h / length


class LengthPlusOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        return h.norm(dim=1, keepdim=True) + 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient.expand(-1, WIDTH)


LengthPlusOne.__name__ = "Norm"  # its node is a NormBackward, as PyTorch's own are NormBackward1


def softmax_by_hand(h):
    e = torch.exp(h)
    return e / e.sum(1, keepdim=True)


def stable_softmax_by_hand(h):
    e = torch.exp(h - h.max(1, keepdim=True).values)
    return e / e.sum(1, keepdim=True)


DIVIDES = {
    "norm": lambda h: h / h.norm(dim=1, keepdim=True),
    "norm, of values without a gradient": lambda h: (
        h + h.detach() / h.detach().norm(dim=1, keepdim=True)
    ),
    "linalg": lambda h: torch.div(h, torch.linalg.vector_norm(h, dim=1)[:, None]),
    "deviation": lambda h: (h - h.mean(1, keepdim=True)) / h.std(1, keepdim=True),
    "deviation plus nothing": lambda h: h / (h.std(1, keepdim=True) + 0),
    "sum": lambda h: h / h.abs().sum(1, keepdim=True),
    "by hand": with_norm_by_hand,
    "reciprocal": lambda h: h * h.norm(dim=1).reciprocal().unsqueeze(1),
    "rsqrt": lambda h: h * h.square().mean(1, keepdim=True).rsqrt(),
    "range": min_max,
    "root in place": lambda h: h / h.square().sum(1, keepdim=True).sqrt_(),
    "division in place": lambda h: (2 * h).div_(h.norm(dim=1, keepdim=True)),
    "a floor of zero": lambda h: h / h.norm(dim=1, keepdim=True).clamp_min(0.0),
    "a floor of zero, without a gradient": lambda h: (
        h + h.detach() / h.detach().norm(dim=1, keepdim=True).clamp_(min=0)
    ),
    "a clamp from above": lambda h: h / h.std(1, keepdim=True).clip(max=5.0),
}
LOGS_SUM = {
    "sum": lambda h: h + h.exp().sum(1, keepdim=True).log(),
    "running sum": lambda h: torch.log(torch.cumsum(torch.exp(h), dim=1)),
    "from the end": lambda h: h - h.exp().flip(1).cumsum(1).flip(1).log(),
}
LOGS = {
    "softmax": lambda h: torch.log(torch.softmax(h, dim=1)),
    "sigmoid": lambda h: h.sigmoid().log(),
    "one minus": lambda h: torch.log(1 - torch.sigmoid(h)),
    "one of them": lambda h: h + h.softmax(1)[:, 0].log().unsqueeze(1),
    "by hand": softmax_by_hand,
}
SAFE = {
    "normalize": lambda h: F.normalize(h, dim=1),
    "an epsilon": lambda h: h / (h.norm(dim=1, keepdim=True) + 1e-8),
    "a clamp": lambda h: h / h.norm(dim=1, keepdim=True).clamp(min=1e-8),
    "an epsilon inside": lambda h: h / (h.var(1, keepdim=True) + 1e-5).sqrt(),
    "a number": lambda h: h / WIDTH**0.5,
    "a count": lambda h: h.sum(1, keepdim=True) / h.shape[1] + h,
    "log_softmax": lambda h: F.log_softmax(h, dim=1),
    "logsigmoid": F.logsigmoid,
    "log with an epsilon": lambda h: torch.log(torch.softmax(h, dim=1) + 1e-9),
    "clamped": lambda h: torch.sigmoid(h).clamp(1e-6, 1 - 1e-6).log(),
    "clamped from above": lambda h: torch.log(1 - torch.sigmoid(h).clamp(max=1 - 1e-6)),
    "softmax": lambda h: F.softmax(h, dim=1),
    "softmax by hand, the largest taken off": stable_softmax_by_hand,
    "logsumexp": lambda h: h - h.logsumexp(1, keepdim=True),
    "logcumsumexp": lambda h: h - h.logcumsumexp(1),
    "log of a sum of exponentials, the largest taken off": lambda h: (
        (h - h.amax(1, keepdim=True)).exp().sum(1, keepdim=True).log() + h
    ),
    "layer norm": lambda h: F.layer_norm(h, (WIDTH,)),
    "an epsilon in place": lambda h: h / h.abs().sum(1, keepdim=True).add_(1e-8),
    "a clamp in place": lambda h: h / h.detach().std(1, keepdim=True).clamp_(min=1e-8),
    "zeros replaced": with_zeros_replaced,
    "zeros masked": lambda h: (
        h / h.detach().abs().sum(1, keepdim=True).masked_fill_(h[:, :1] == 0, 1)
    ),
    "a probability raised": lambda h: h + h.detach().softmax(1).add_(1e-9).log(),
    "a function of one's own": lambda h: h / LengthPlusOne.apply(h),
}


def cross_entropy_by_hand(scores, labels):
    return -torch.log(F.softmax(scores, dim=1)).gather(1, labels[:, None]).mean()


def binary_by_hand(scores, labels):
    p = torch.sigmoid(scores[:, 0])
    y = (labels > 1).float()
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()


def one_hot(scores, labels):
    return -torch.log((F.softmax(scores, dim=1) * F.one_hot(labels, CLASSES)).sum(1)).mean()


def info_nce(scores, labels):
    e = torch.exp(scores)
    return -torch.log(e[torch.arange(len(e)), labels] / e.sum(1)).mean()


def distances(scores, labels):
    return (scores[1:] - scores[:-1]).pow(2).sum(1).sqrt().mean()


def cosine(scores, labels):
    norms = scores[1:].norm(dim=1) * scores[:-1].norm(dim=1)
    return ((scores[1:] * scores[:-1]).sum(1) / norms).mean()


def squared_distances(scores):
    product = scores @ scores.T
    square = product.diag()
    return (square[:, None] - 2 * product + square[None, :]).clamp(min=0)


def distance_matrix(scores, labels):
    return squared_distances(scores).sqrt().mean()


def raised_distance_matrix(scores, labels):
    return squared_distances(scores).clamp(min=1e-6).sqrt().mean()


def roots_of_squares(scores, labels):
    return (scores[1:] - scores[:-1]).square().pow(0.5).mean()


def roots_of_sizes(scores, labels):
    return scores.abs().sqrt().mean()


def roots_of_raised_sizes(scores, labels):
    return (scores.abs() + 1e-6).sqrt().mean()


def powers_of_sizes(scores, labels):
    return scores.abs().pow(1.5).mean()


def masked_mean(scores, labels):
    loss = F.cross_entropy(scores, labels, reduction="none")
    weight = F.softplus(scores[:, 0])
    return (loss * weight).sum() / weight.sum()


def order(scores, labels):
    ordered = scores.gather(1, scores.argsort(1)).flip(1)
    return (ordered.exp().cumsum(1).log().flip(1) - ordered.flip(1)).mean()


def of_two_sums(scores, labels):
    right = scores[:, :1]
    return (torch.log(right.exp().sum(1) + scores[:, 1:].exp().sum(1)) - right[:, 0]).mean()


LOSSES = {
    "logs_sum_of_exponentials": {"order": order, "of two sums": of_two_sums},
    "divides_by_measure": {
        "distances": distances,
        "distance matrix": distance_matrix,
        "masked mean": masked_mean,
        "roots of sizes": roots_of_sizes,
        "roots of squares": roots_of_squares,
    },
    "logs_probability": {
        "by hand": cross_entropy_by_hand,
        "binary": binary_by_hand,
        "one-hot": one_hot,
        "info nce": info_nce,
    },
}


def train(run_dir, inside, loss_of=F.cross_entropy, *, watch=True):
    torch.manual_seed(3)
    model = Model(inside)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if watch:
        rules = ["non_finite"]
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    losses = []
    for _ in range(4):
        x, labels = torch.randn(8, WIDTH), torch.randint(0, CLASSES, (8,))
        loss = loss_of(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, losses)


def told(run_dir) -> dict[str, str]:
    """The facts about such operations, with their places."""
    found = {}
    for name in td.Run(run_dir).names():
        for fact in ("divides_by_measure", "logs_probability", "logs_sum_of_exponentials"):
            if name == f"loop/{fact}" or name.startswith(f"loop/{fact}/"):
                found[fact] = name.partition(f"loop/{fact}")[2].lstrip("/")
    return found


@pytest.mark.parametrize("name", DIVIDES)
def test_a_division_by_what_may_be_zero_is_told_with_its_module(run_dir, name):
    train(run_dir, DIVIDES[name])
    assert told(run_dir) == {"divides_by_measure": "scale"}


@pytest.mark.parametrize("name", LOGS)
def test_a_logarithm_of_what_may_be_zero_is_told_with_its_module(run_dir, name):
    train(run_dir, LOGS[name])
    assert told(run_dir) == {"logs_probability": "scale"}


@pytest.mark.parametrize("name", LOGS_SUM)
def test_a_logarithm_of_a_sum_that_may_overflow_is_told_with_its_module(run_dir, name):
    train(run_dir, LOGS_SUM[name])
    assert told(run_dir) == {"logs_sum_of_exponentials": "scale"}


@pytest.mark.parametrize("name", SAFE)
def test_nothing_is_told_of_safe_forms(run_dir, name):
    train(run_dir, SAFE[name])
    assert told(run_dir) == {}


@pytest.mark.parametrize(
    ("fact", "name"), [(fact, name) for fact, losses in LOSSES.items() for name in losses]
)
def test_of_a_loss_it_is_told_by_its_graph(run_dir, fact, name):
    train(run_dir, lambda h: h, LOSSES[fact][name])
    assert told(run_dir) == {fact: ""}


@pytest.mark.parametrize(
    "loss_of", [raised_distance_matrix, roots_of_raised_sizes, powers_of_sizes]
)
def test_nothing_is_told_of_roots_that_are_kept_from_zero(run_dir, loss_of):
    train(run_dir, lambda h: h, loss_of)
    assert told(run_dir) == {}


def over_one(h):
    """Scores (batch, positions, 1), each by itself."""
    scores = h[:, :, None]
    return h * torch.softmax(scores, dim=-1).squeeze(-1)


def over_one_channel(h):
    """Scores (batch, 1, positions)."""
    return h * torch.softmax(h[:, None], dim=1).squeeze(1)


def over_all_positions(h):
    return h * torch.softmax(h[:, :, None], dim=1).squeeze(-1)


def among_one_expert(h):
    """The gate of a mixture that has one expert: (batch, 1)."""
    return h * torch.softmax(h.mean(1, keepdim=True), dim=-1)


def among_one_expert_of_one_head(h):
    return h * torch.softmax(h.mean(1)[:, None, None], dim=-1).squeeze(-1)


def over_a_batch_of_one(h):
    """(1, batch, values): of samples that are given one by one."""
    return h * torch.softmax(h[None], dim=0).squeeze(0)


def over_positions(h):
    return h * torch.softmax(h.mean(1, keepdim=True), dim=0)


def of_one_key(h):
    """Attention that may look at one thing only."""
    key = h[:1]
    return h + torch.softmax(h @ key.T, dim=-1) @ key


def over_a_past_that_grows(h):
    """Of a decoder that looks at what it has made so far: at the first position at one thing."""
    for length in range(1, 4):
        past = h[:length]
        h = h + torch.softmax(past.mean(1, keepdim=True), dim=0).T @ past
    return h


@pytest.mark.parametrize(
    ("inside", "place"),
    [
        (over_one, "scale"),
        (over_one_channel, "scale"),
        (over_all_positions, None),
        (among_one_expert, None),
        (among_one_expert_of_one_head, None),
        (over_a_batch_of_one, None),
        (over_positions, None),
        (of_one_key, None),
        (over_a_past_that_grows, None),
    ],
)
def test_a_softmax_over_one_value_is_told(run_dir, inside, place):
    train(run_dir, inside)
    names = [name for name in td.Run(run_dir).names() if "softmax_of_one" in name]
    assert names == ([f"loop/softmax_of_one/{place}"] if place else [])
    if place:
        lines = set(td.Run(run_dir).scalars(names[0]).values)
        source, first = inspect.getsourcelines(inside)
        assert lines == {first + len(source) - 1}


class _BagOfOne(nn.Module):
    """Attention over a bag, the sum of which goes through weights."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(6, 1)
        self.last = nn.Linear(6, 1)

    def forward(self, x):
        shares = torch.softmax(self.scores(x), 1)
        return self.last((shares * x).unsqueeze(1).sum(1))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 1), nn.Softmax(dim=-1)), ["loop/softmax_of_unit/1"]),
        (lambda: nn.Sequential(nn.Linear(6, 3), nn.Softmax(dim=-1)), []),
        (_BagOfOne, []),
    ],
)
@pytest.mark.parametrize(
    "loss",
    [
        lambda p: F.binary_cross_entropy(p.clamp(1e-6, 1 - 1e-6), torch.ones_like(p)),
        lambda p: F.mse_loss(2 * p.squeeze(-1) - 1, torch.zeros(p.squeeze(-1).shape)),
        lambda p: F.l1_loss(p, torch.zeros_like(p)) + p.sum() * 0,
    ],
)
def test_a_softmax_over_one_unit_is_told(run_dir, model, expected, loss):
    """Of each sample's only value, which is told by another name: it may be a choice among one."""
    model = model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for _ in range(3):
        optimizer.zero_grad()
        loss(model(torch.randn(8, 6))).backward()
        optimizer.step()
    watcher.detach()
    names = [name for name in td.Run(run_dir).names() if "softmax_of" in name]
    assert names == expected


def test_the_line_is_that_of_the_division(run_dir):
    train(run_dir, with_norm_by_hand)
    line = td.Run(run_dir).scalars("loop/divides_by_measure/scale").values[0]
    assert line == with_norm_by_hand.__code__.co_firstlineno + 1


def test_of_two_models_each_tells_what_it_calls(run_dir):
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(WIDTH, WIDTH), Scale(inside)) for inside in (min_max, F.relu)]
    parameters = [parameter for model in models for parameter in model.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    watchers = [
        td.watch(models[0], optimizer, run_dir=run_dir, supervise=False, rules=["non_finite"]),
        td.watch(models[1], optimizer),
    ]
    for _ in range(4):
        optimizer.zero_grad()
        scores = models[1](models[0](torch.randn(8, WIDTH)))
        F.cross_entropy(scores, torch.randint(0, WIDTH, (8,))).backward()
        optimizer.step()
    for watcher in watchers:
        watcher.detach()
    assert told(run_dir) == {"divides_by_measure": "1"}


@pytest.mark.parametrize("inside", [min_max, softmax_by_hand, SAFE["an epsilon"]])
def test_the_training_is_the_same_bit_for_bit(run_dir, inside):
    assert train(run_dir, inside) == train(run_dir, inside, watch=False)


def test_a_row_of_zeros_is_named_as_a_division_by_zero(run_dir):
    torch.manual_seed(0)
    model = Model(lambda h: h / h.norm(dim=1, keepdim=True))
    nn.init.zeros_(model.first.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for step in range(8):
        x = torch.randn(8, WIDTH)
        if step == 5:
            x[3] = 0
            model.first.bias.data.zero_()
        optimizer.zero_grad()
        F.cross_entropy(model(x), torch.randint(0, CLASSES, (8,))).backward()
        optimizer.step()
    watcher.detach()
    beside = Path(sys.executable).with_name("traindbg")
    program = str(beside) if beside.is_file() else shutil.which("traindbg")
    done = subprocess.run(
        [program, "check", str(run_dir), "--json"], capture_output=True, text=True, timeout=120
    )
    verdict = json.loads(done.stdout)
    assert verdict["causes"][0]["name"] == "division_by_zero_norm"
    finding = next(f for f in verdict["findings"] if f["rule"] == "non_finite")
    assert finding["kind"] == "division_by_zero_norm"
    assert finding["first_step"] == 5
    assert finding["layer"] == "scale"
