"""Losses of evaluations that a function of the program's own computes."""

from __future__ import annotations

import cProfile
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks import torch_own_losses

TRAINDBG = Path(sys.executable).with_name("traindbg")

X = torch.randn(96, 6, generator=torch.Generator().manual_seed(1))
Y = X[:, :1] * 2 + 1
X_NEW = torch.randn(40, 6, generator=torch.Generator().manual_seed(2))
Y_NEW = X_NEW[:, :1] * 2 + 1
ROUNDS = 6


@pytest.fixture(autouse=True)
def _nobody_is_told():
    assert sys.getprofile() is None
    yield
    assert sys.getprofile() is None


def pinball(output, y):
    error = y - output
    return torch.maximum(0.7 * error, -0.3 * error).mean()


class Pinball(nn.Module):
    def forward(self, output, y):
        return pinball(output, y)


class Plain:
    def __init__(self, share):
        self.share = share

    def __call__(self, output, y):
        return pinball(output, y) + self.share * 0


def with_parts(output, y):
    loss = pinball(output, y)
    return loss, (y - output).abs().mean().detach()


def with_parts_last(output, y):
    return float(len(y)), pinball(output, y)


def as_dict(output, y):
    return {"absolute": (y - output).abs().mean().detach(), "loss": pinball(output, y)}


def of_rows(output, y):
    """What is weighted by hand has no function of PyTorch's that gives its value."""
    return (F.mse_loss(output, y, reduction="none") * (1 + y.abs())).mean()


def total(output, y):
    """Calls others that return losses, too."""
    return pinball(output, y) + 0.1 * pinball(-output, y)


def train(run_dir, loss, key=None, *, rounds=ROUNDS, evaluate=None, watch=True, backward=None):
    """Trains for some rounds of two steps with an evaluation each.

    Returns the weights and what the program computed in its evaluations.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    computed = []

    def loss_of(returned):
        return returned if key is None else returned[key]

    def evaluated():
        model.eval()
        with torch.no_grad():
            value = loss_of(loss(model(X_NEW), Y_NEW)).item()
        return [value]

    watcher = None
    if watch:
        watcher = td.watch(
            model, optimizer, run_dir=run_dir, supervise=False, rules=["overfit", "dead_relu"]
        )
    for _ in range(rounds):
        model.train()
        for part in (slice(0, 48), slice(48, None)):
            optimizer.zero_grad()
            value = loss_of(loss(model(X[part]), Y[part]))
            (backward or torch.Tensor.backward)(value)
            optimizer.step()
        computed += evaluate(model, loss) if evaluate else evaluated()
    if watcher is not None:
        watcher.detach()
    return [p.detach().clone() for p in model.parameters()], computed


def losses(run_dir, mode="eval"):
    run = td.Run(run_dir)
    return list(run.scalars("loss", mode)[1]) if "loss" in run.names() else []


@pytest.mark.parametrize(
    ("loss", "key"),
    [
        (pinball, None),
        (Pinball(), None),
        (Plain(0.5), None),
        (lambda output, y: pinball(output, y) * 1, None),
        (with_parts, 0),
        (with_parts_last, 1),
        (as_dict, "loss"),
        (of_rows, None),
        (total, None),
    ],
    ids=[
        "function",
        "module",
        "callable",
        "lambda",
        "tuple",
        "last of a tuple",
        "dict",
        "weighted rows",
        "of others",
    ],
)
def test_it_is_recorded_as_the_program_computed_it(tmp_path, loss, key):
    weights, computed = train(tmp_path / "run", loss, key)
    alone, _ = train(tmp_path / "none", loss, key, watch=False)
    assert losses(tmp_path / "run") == pytest.approx(computed)
    assert len(losses(tmp_path / "run", "train")) == 2 * ROUNDS
    assert all(torch.equal(a, b) for a, b in zip(weights, alone, strict=True))


def test_a_function_that_calls_the_model(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def objective(net, x, y):
        return (net(x) - y).abs().mean()

    computed = []
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        for _ in range(ROUNDS):
            model.train()
            optimizer.zero_grad()
            objective(model, X, Y).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                computed.append(objective(model, X_NEW, Y_NEW).item())
    # The first one comes after one step, of two that have to agree.
    assert losses(tmp_path / "run") == pytest.approx(computed[1:])


def test_several_batches_are_one_evaluation(tmp_path):
    def evaluate(model, loss):
        model.eval()
        with torch.no_grad():
            return [
                loss(model(x), y).item()
                for x, y in zip(X_NEW.split(10), Y_NEW.split(10), strict=True)
            ]

    _, computed = train(tmp_path / "run", pinball, evaluate=evaluate)
    assert losses(tmp_path / "run") == pytest.approx(computed)


def test_several_losses_of_what_one_pass_after_another_gave(tmp_path):
    def evaluate(model, loss):
        model.eval()
        with torch.no_grad():
            known, new = model(X), model(X_NEW)
            return [loss(known, Y).item(), loss(new, Y_NEW).item()]

    _, computed = train(tmp_path / "run", pinball, evaluate=evaluate)
    assert losses(tmp_path / "run") == pytest.approx(computed)


def test_a_scaled_loss(tmp_path):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    _, computed = train(
        tmp_path / "run", pinball, backward=lambda value: scaler.scale(value).backward()
    )
    assert losses(tmp_path / "run") == pytest.approx(computed)


def test_what_is_not_returned_by_a_function_is_not_found(tmp_path):
    train(tmp_path / "run", pinball, backward=lambda value: (value + 0.1).backward())
    assert losses(tmp_path / "run") == []


def test_functions_that_take_turns_say_nothing(tmp_path):
    """Which of them an evaluation is about is not known."""

    def other(output, y):
        return (output - y).abs().mean()

    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        for number in range(8):
            model.train()
            optimizer.zero_grad()
            (pinball if number % 2 else other)(model(X), Y).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                pinball(model(X_NEW), Y_NEW)
    assert losses(tmp_path / "run") == []


def test_of_functions_of_pytorch_nothing_is_asked(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(torch_own_losses._Told, "begin", lambda self: begun.append(1))
    train(tmp_path / "run", F.mse_loss)
    assert begun == [1]  # at the first step, until its loss was heard


def test_nothing_is_asked_where_no_evaluation_is_wanted(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(torch_own_losses._Told, "begin", lambda self: begun.append(1))
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["dead_relu"]):
        pinball(model(X), Y).backward()
        optimizer.step()
    assert begun == []


def test_a_profiler_of_the_users_is_left_alone(tmp_path):
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        _, computed = train(tmp_path / "run", pinball)
        assert sys.getprofile() is profiler
    finally:
        profiler.disable()
    assert len(computed) == ROUNDS
    assert losses(tmp_path / "run") == []
    assert any(entry.code == pinball.__code__ for entry in profiler.getstats())


def test_a_profiler_that_begins_in_an_evaluation_stays(tmp_path):
    told = []

    def mine(frame, event, value):
        told.append(event)

    def evaluate(model, loss):
        model.eval()
        with torch.no_grad():
            output = model(X_NEW)
            sys.setprofile(mine)
            loss(output, Y_NEW)
        assert sys.getprofile() is mine
        sys.setprofile(None)
        return []

    train(tmp_path / "run", pinball, evaluate=evaluate)
    assert told
    assert losses(tmp_path / "run") == []


def test_nobody_is_told_outside_of_the_evaluation(tmp_path):
    seen = {"step": [], "between": []}

    def evaluate(model, loss):
        model.eval()
        with torch.no_grad():
            loss(model(X_NEW), Y_NEW)
        return []

    class Adam(torch.optim.Adam):
        def step(self, *args, **kwargs):
            result = super().step(*args, **kwargs)
            seen["step"].append(sys.getprofile())
            return result

    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = Adam(model.parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        for _ in range(ROUNDS):
            model.train()
            optimizer.zero_grad()
            value = pinball(model(X), Y)
            value.backward()
            seen["between"].append(sys.getprofile())
            optimizer.step()
            evaluate(model, pinball)
    assert seen == {"step": [None] * ROUNDS, "between": [None] * ROUNDS}
    assert len(losses(tmp_path / "run")) == ROUNDS - 1


def test_how_much_is_told_is_limited(tmp_path):
    after = []

    def work(number):
        return number + 1

    def evaluate(model, loss):
        model.eval()
        with torch.no_grad():
            output = model(X_NEW)
            for number in range(torch_own_losses._MOST_TOLD_OF_EVALUATIONS):
                work(number)
            after.append(sys.getprofile())
            return [loss(output, Y_NEW).item()]

    train(tmp_path / "run", pinball, evaluate=evaluate)
    assert after == [None] * ROUNDS
    assert losses(tmp_path / "run") == []


def test_evaluations_in_which_it_never_returns_are_no_more_asked(tmp_path):
    told = []

    def evaluate(model, loss):
        model.eval()
        with torch.no_grad():
            model(X_NEW)
            told.append(sys.getprofile() is not None)
        return []

    train(tmp_path / "run", pinball, rounds=40, evaluate=evaluate)
    assert told == [True] * torch_own_losses._MOST_UNHEARD + [False] * (
        40 - torch_own_losses._MOST_UNHEARD
    )


def test_a_loss_that_raises_in_an_evaluation_is_the_programs(tmp_path):
    class MineError(Exception):
        pass

    def loss(output, y):
        if not output.requires_grad:
            raise MineError
        return pinball(output, y)

    def evaluate(model, loss):
        model.eval()
        with torch.no_grad(), pytest.raises(MineError):
            loss(model(X_NEW), Y_NEW)
        return []

    train(tmp_path / "run", loss, evaluate=evaluate)
    assert losses(tmp_path / "run") == []


def test_detaching_before_the_loss_is_computed(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watcher = td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False)
    for _ in range(3):
        pinball(model(X), Y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        output = model(X_NEW)
        watcher.detach()
        assert sys.getprofile() is None
        pinball(output, Y_NEW)
    assert losses(tmp_path / "run") == []


def test_no_loss_is_kept(tmp_path):
    alive = []

    def kept(output, y):
        value = pinball(output, y)
        alive.append(weakref.ref(value))
        return value

    def evaluate(model, loss):
        assert all(each() is None for each in alive[:-1])
        model.eval()
        with torch.no_grad():
            loss(model(X_NEW), Y_NEW)
        assert alive[-1]() is None
        return []

    train(tmp_path / "run", kept, evaluate=evaluate)
    assert len(losses(tmp_path / "run")) == ROUNDS


def test_an_evaluation_by_another_thread_is_not_heard(tmp_path):
    """Of a pass in the training's thread: what other threads return is none of it."""

    def evaluate(model, loss):
        model.eval()
        with torch.no_grad():
            output = model(X_NEW)
        thread = threading.Thread(target=loss, args=(output, Y_NEW))
        thread.start()
        thread.join()
        return []

    train(tmp_path / "run", pinball, evaluate=evaluate)
    assert losses(tmp_path / "run") == []


def test_without_a_change_of_the_program(tmp_path):
    """Under `traindbg run`, of a loss of many rows that overfits."""
    program = tmp_path / "survival.py"
    program.write_text(
        textwrap.dedent("""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, x_new = torch.randn(40, 60), torch.randn(200, 60)
        risk, risk_new = x[:, :3].sum(1), x_new[:, :3].sum(1)
        time = torch.rand(40).log().neg() * (-risk).exp()
        time_new = torch.rand(200).log().neg() * (-risk_new).exp()

        def cox(score, time):
            order = time.argsort(descending=True)
            return (score[order].logcumsumexp(0) - score[order]).mean()

        model = nn.Sequential(nn.Linear(60, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for epoch in range(60):
            model.train()
            optimizer.zero_grad()
            loss = cox(model(x).squeeze(1), time)
            loss.backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                print(cox(model(x_new).squeeze(1), time_new).item())
        """)
    )
    run_dir = tmp_path / "run"
    done = subprocess.run(
        [TRAINDBG, "run", "--run-dir", run_dir, "--quiet", "--", sys.executable, program],
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [float(line) for line in done.stdout.split()]
    assert losses(run_dir) == pytest.approx(printed[1:], rel=1e-5)
