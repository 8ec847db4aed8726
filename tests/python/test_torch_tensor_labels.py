"""Losses of evaluations that compute none, of labels beside the tensor that is evaluated."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings

Evaluate = Callable[[nn.Module], object]

GENERATOR = torch.Generator().manual_seed(1)
X = torch.randn(
    331, 6, generator=GENERATOR
)  # as many as no other test has: all tensors are looked at
CLASSES = (X[:, 0] > 0).long() + (X[:, 1] > 0.5).long()
YES = (X[:, 0] > 0).float()
NUMBERS = X[:, 0] * 2 + 1
N = 192  # rows of the training
EPOCHS = 10
RULES = ["overfit", "label_noise"]


@pytest.fixture(autouse=True)
def nothing_is_left_of_other_tests() -> None:
    gc.collect()


def run_training(
    run_dir: Path | None,
    evaluate: Evaluate,
    loss: Callable[..., torch.Tensor] = F.cross_entropy,
    y: torch.Tensor = CLASSES,
    outputs: int = 3,
    without: Callable[[], Any] = torch.no_grad,
    model: nn.Module | None = None,
    x: torch.Tensor = X,
    rules: list[str] = RULES,
) -> list[torch.Tensor]:
    """Evaluates after each time through the data; without `run_dir` nothing watches."""
    torch.manual_seed(0)
    model = model or nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, outputs))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    watcher = None
    if run_dir is not None:
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    for _ in range(EPOCHS):
        model.train()
        for rows in torch.randperm(N).split(32):
            output = model(x[rows])
            optimizer.zero_grad()
            loss(output if outputs > 1 else output.squeeze(1), y[rows]).backward()
            optimizer.step()
        model.eval()
        with without():
            evaluate(model)
    if watcher is not None:
        watcher.detach()
    return [*(p.detach().clone() for p in model.parameters()), torch.random.get_rng_state()]


def losses(run_dir: Path, function: str = "cross_entropy") -> list[float]:
    run = td.Run(run_dir)
    name = f"loss/{function}"
    return list(run.scalars(name, "eval")[1]) if name in run.names() else []


CASES: dict[str, tuple[Callable[..., torch.Tensor], torch.Tensor, int]] = {
    "cross_entropy": (F.cross_entropy, CLASSES, 3),
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, YES, 1),
    "mse_loss": (F.mse_loss, NUMBERS, 1),
    "smooth_l1_loss": (nn.SmoothL1Loss(beta=0.3), NUMBERS, 1),
}


@pytest.mark.parametrize("function", CASES)
def test_the_loss_of_the_training_is_computed(function: str, run_dir: Path) -> None:
    loss, y, outputs = CASES[function]
    x_val, y_val = X[N:].clone(), y[N:].clone()
    returned: list[torch.Tensor] = []

    def evaluate(model: nn.Module) -> object:
        returned.append(model(x_val).clone())
        return (returned[-1].argmax(1) == y_val).float().mean() if outputs > 1 else None

    run_training(run_dir, evaluate, loss, y, outputs)
    wanted = [loss(out if outputs > 1 else out.squeeze(1), y_val).item() for out in returned[1:]]
    found = losses(run_dir, function)
    # Of all but the first one, where numbers are told; what is hardly learned yet shows nothing.
    assert len(found) == EPOCHS - 1 if y is NUMBERS else len(found) >= 3
    np.testing.assert_allclose(found, wanted[-len(found) :], rtol=1e-6)
    steps = list(td.Run(run_dir).scalars(f"loss/{function}", "eval")[0])
    assert len(steps) == len(set(steps)) == len(found)
    (event,) = (e for e in td.Run(run_dir).events if e["kind"] == "evaluation_losses")
    assert event["data"]["of"] == "tensors"


def test_labels_of_another_type_and_shape(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), YES[N:].long()[:, None]

    def evaluate(model: nn.Module) -> object:
        return ((model(x_val) > 0) == (y_val == 1)).float().mean()

    run_training(run_dir, evaluate, F.binary_cross_entropy_with_logits, YES, 1)
    assert len(losses(run_dir, "binary_cross_entropy_with_logits")) >= 4


def test_rows_that_are_cut_out_each_time(run_dir: Path) -> None:
    def evaluate(model: nn.Module) -> object:
        return (model(X[N:]).argmax(1) == CLASSES[N:]).float().mean()

    run_training(run_dir, evaluate)
    assert len(losses(run_dir)) >= 4


def test_predictions_are_no_labels(run_dir: Path) -> None:
    """They live on from one evaluation to the next."""
    x_val = X[N:].clone()
    predictions: list[torch.Tensor] = []
    run_training(run_dir, lambda model: predictions.append(model(x_val).argmax(1)))
    # `X[N:]` and `CLASSES` are other tensors, of other rows.
    assert losses(run_dir) == []


class OfTask(nn.Module):
    """Two heads: which one is asked for is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.heads = nn.Linear(6, 8), nn.ModuleList(nn.Linear(8, 3) for _ in range(2))

    def forward(self, x: torch.Tensor, task: int = 0) -> torch.Tensor:
        return self.heads[task](self.body(x).tanh())


def test_calls_with_other_arguments_are_others(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    wanted: list[float] = []

    def evaluate(model: nn.Module) -> None:
        output = model(x_val)
        wanted.append(-output.log_softmax(1).gather(1, y_val[:, None]).mean().item())
        (output.argmax(1) == y_val).float().mean()
        (model(x_val, 1).argmax(1) == 2 - y_val).float().mean()

    run_training(run_dir, evaluate, model=OfTask())
    found = losses(run_dir)
    np.testing.assert_allclose(found, wanted[-len(found) :], rtol=1e-5)
    assert len(found) >= 2  # what is hardly learned yet shows nothing


def test_what_a_model_said_before_it_was_trained_on_is_no_label(run_dir: Path) -> None:
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    x_val = X[N:].clone()
    with torch.no_grad():
        before = model(x_val).argmax(1)
    run_training(run_dir, lambda m: (m(x_val).argmax(1) != before).float().mean(), model=model)
    assert losses(run_dir) == []


@pytest.mark.parametrize("seed", [3, 4, 9, 11])  # of which the outputs are off by a slope at first
def test_numbers_are_told_as_in_the_training(run_dir: Path, seed: int) -> None:
    x = torch.randn(331, 6, generator=torch.Generator().manual_seed(seed))
    y = x[:, 0] * 2 + 1
    x_val, y_val = x[N:].clone(), y[N:].clone()
    wanted: list[float] = []

    def evaluate(model: nn.Module) -> None:
        wanted.append((model(x_val)[:, 0] - y_val).square().mean().item())

    run_training(run_dir, evaluate, F.mse_loss, y, 1, x=x)
    np.testing.assert_allclose(losses(run_dir, "mse_loss"), wanted[1:], rtol=1e-5)


@pytest.mark.parametrize("unit", [0.5, 0.75, 1.0, 1.3, 4.0])
def test_numbers_in_another_unit_are_no_labels(run_dir: Path, unit: float) -> None:
    x_val, y_val = X[N:].clone(), NUMBERS[N:] * unit
    run_training(run_dir, lambda model: model(x_val)[:, 0] * unit - y_val, F.mse_loss, NUMBERS, 1)
    assert bool(losses(run_dir, "mse_loss")) == (unit == 1)


def test_a_buffer_of_numpy_that_is_written_to_is_none(run_dir: Path) -> None:
    x_val, buffer = X[N:].clone(), np.zeros(len(X) - N, dtype=np.int64)
    held = torch.from_numpy(buffer)

    def evaluate(model: nn.Module) -> None:
        buffer[:] = model(x_val).argmax(1).numpy()

    run_training(run_dir, evaluate)
    assert losses(run_dir) == []
    assert len(held) == len(buffer)


def test_of_two_sets_it_is_the_one_that_is_told_worse(run_dir: Path) -> None:
    """The training's rows were changed at random before they were trained on."""
    x_train, y_train = X[:N] + 1e-3, CLASSES[:N].clone()
    x_val, y_val = X[N:] + 0.1, CLASSES[N:].clone()
    wanted: list[float] = []

    def evaluate(model: nn.Module) -> None:
        (model(x_train).argmax(1) == y_train).float().mean()
        output = model(x_val)
        wanted.append(-output.log_softmax(1).gather(1, y_val[:, None]).mean().item())

    run_training(run_dir, evaluate)
    found = losses(run_dir)  # none, where one of the sets is told too badly
    np.testing.assert_allclose(found, wanted[len(wanted) - len(found) :], rtol=1e-5)


def test_tensors_of_the_program_may_be_swapped(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    run_training(run_dir, lambda model: (model(x_val).argmax(1) == y_val).float().mean())
    torch.utils.swap_tensors(x_val, torch.zeros(3))
    torch.utils.swap_tensors(y_val, torch.zeros(3))


@pytest.mark.parametrize("kind", ["nested", "freed", "of a function"])
def test_tensors_that_cannot_be_read_are_left_alone(run_dir: Path, kind: str) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    held: list[torch.Tensor] = []
    if kind == "nested":
        held.append(torch.nested.nested_tensor([torch.zeros(3), torch.zeros(4)]))
    elif kind == "freed":
        held.append(torch.zeros(len(y_val), dtype=torch.long))
        held[0].untyped_storage().resize_(0)
    else:
        torch.func.vmap(lambda row: held.append(row) or row)(torch.zeros(2, len(y_val)).long())
    run_training(run_dir, lambda model: (model(x_val).argmax(1) == y_val).float().mean())
    assert len(losses(run_dir)) >= 4
    assert held


def test_labels_of_numpy_are_none(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].numpy().copy()
    run_training(run_dir, lambda model: (model(x_val).argmax(1).numpy() == y_val).mean())
    assert losses(run_dir) == []


def test_of_two_tensors_that_may_be_labels_it_is_the_one_that_is_told(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    others = [torch.randint(0, 3, (len(y_val),)) for _ in range(3)]
    run_training(run_dir, lambda model: (model(x_val).argmax(1) == y_val).float().mean())
    assert len(losses(run_dir)) >= 4
    assert len(others) == 3


def test_of_two_that_the_model_tells_it_is_none(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    coarse = y_val.clamp(max=1)
    run_training(run_dir, lambda model: (model(x_val).argmax(1) == y_val).float().mean())
    assert losses(run_dir) == []
    assert coarse.max() == 1


def test_the_trainings_own_rows_are_no_evaluation(run_dir: Path) -> None:
    x, y = X[:N].clone(), CLASSES[:N].clone()
    run_training(run_dir, lambda model: (model(x).argmax(1) == y).float().mean())
    assert losses(run_dir) == []


@pytest.mark.parametrize("first", [0, 7])
def test_a_loss_of_the_program_ends_it(run_dir: Path, first: int) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    own: list[float] = []
    evaluations = 0

    def evaluate(model: nn.Module) -> None:
        nonlocal evaluations
        output = model(x_val)
        if evaluations >= first:
            own.append(F.cross_entropy(output, y_val).item())
        evaluations += 1

    run_training(run_dir, evaluate)
    found = losses(run_dir)
    np.testing.assert_allclose(found[-len(own) + 1 :], own[1:], rtol=1e-6)


def test_labels_that_are_written_to_are_labels_no_more(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    evaluations = 0

    def evaluate(model: nn.Module) -> None:
        nonlocal evaluations
        (model(x_val).argmax(1) == y_val).float().mean()
        evaluations += 1
        if evaluations == EPOCHS - 2:
            y_val.zero_()

    run_training(run_dir, evaluate)
    assert 2 <= len(losses(run_dir)) <= EPOCHS - 3


def test_what_plays_is_not_evaluated(run_dir: Path) -> None:
    run_training(run_dir, lambda model: [model(torch.randn(40, 6)) for _ in range(90)])
    assert losses(run_dir) == []


def test_inference_mode(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    run_training(
        run_dir,
        lambda model: (model(x_val).argmax(1) == y_val).float().mean(),
        without=torch.inference_mode,
    )
    assert len(losses(run_dir)) >= 4


def test_nothing_of_the_training_is_changed_or_kept(run_dir: Path) -> None:
    gone: list[weakref.ref[torch.Tensor]] = []

    def train(watched: Path | None) -> list[torch.Tensor]:
        x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
        gone.extend((weakref.ref(x_val), weakref.ref(y_val)))

        def evaluate(model: nn.Module) -> None:
            (model(x_val).argmax(1) == y_val).float().mean()
            torch.rand(3)

        return run_training(watched, evaluate)

    plain, watched = train(None), train(run_dir)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    assert len(losses(run_dir)) >= 4
    gc.collect()
    assert all(reference() is None for reference in gone)


def hot_path() -> Any:
    recording = recordings.current
    assert recording is not None
    return recording.hot


def test_the_next_loss_is_one_of_the_model_that_is_watched(run_dir: Path) -> None:
    """Labels that another one gave are as good as those of a model beside it that hardly learns."""
    x_val, weak = X[N:].clone(), CLASSES[N:].clone()
    wrong = torch.rand(len(weak), generator=torch.Generator().manual_seed(2)) < 0.3
    weak[wrong] = (weak[wrong] + 1) % 3
    beside = nn.Linear(6, 3)
    descent = torch.optim.SGD(beside.parameters(), lr=1e-4)

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        F.cross_entropy(beside(X[: len(target)]), target).backward()
        descent.step()
        return F.cross_entropy(output, target)

    run_training(run_dir, lambda model: model(x_val), loss)
    assert losses(run_dir) == []
    assert len(weak) == len(x_val)


def test_a_loss_that_is_asked_for_is_asked_for_in_one_step(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    asked: list[bool] = []

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        asked.append(hot_path().hears_next_loss)
        # After four times through the data it is another function.
        function = F.cross_entropy if len(asked) < 4 * N / 32 else F.multi_margin_loss
        return function(output, target)

    run_training(run_dir, lambda model: (model(x_val).argmax(1) == y_val).float().mean(), loss)
    assert any(asked[: 4 * N // 32])
    # The first ones after each evaluation, of this step and the next.
    assert sum(asked[4 * N // 32 :]) <= 2 * (EPOCHS - 3)


def test_a_training_of_another_model_is_not_asked_for_long(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    asked: list[bool] = []

    def evaluate(model: nn.Module) -> None:
        (model(x_val).argmax(1) == y_val).float().mean()
        beside = nn.Linear(6, 3)
        model.train()
        for _ in range(20):
            with torch.enable_grad():
                F.cross_entropy(beside(X[:N]), CLASSES[:N]).backward()
            asked.append(hot_path().hears_next_loss)

    run_training(run_dir, evaluate)
    assert any(asked)
    assert sum(asked) < EPOCHS * 8


def test_nothing_is_asked_for_where_there_are_no_labels(run_dir: Path) -> None:
    x_val = X[N:].clone()
    asked: list[bool] = []

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        asked.append(hot_path().hears_next_loss)
        return F.cross_entropy(output, target)

    run_training(run_dir, lambda model: model(x_val).argmax(1).tolist(), loss)
    assert not any(asked)


def test_an_evaluation_before_the_optimizers_step_is_not_taken_for_one_after_it(
    run_dir: Path,
) -> None:
    x_val, y_val = X[N:].clone(), CLASSES[N:].clone()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
    wanted = []
    for step in range(60):
        rows = torch.randint(N, (32,))
        optimizer.zero_grad()
        F.cross_entropy(model(X[rows]), CLASSES[rows]).backward()
        if step % 6 == 5:
            model.eval()
            with torch.no_grad():
                output = model(x_val)
                wanted.append(-output.log_softmax(1).gather(1, y_val[:, None]).mean().item())
            model.train()
        optimizer.step()
    watcher.detach()
    found = losses(run_dir)
    np.testing.assert_allclose(found, wanted[len(wanted) - len(found) :], rtol=1e-5)


def test_what_an_autoencoder_makes_again_is_its_input(run_dir: Path) -> None:
    """A noisy copy that is alive goes together with it, too."""
    torch.manual_seed(3)
    clean = torch.randn(331, 2) @ torch.randn(2, 6)
    noisy = clean[N:] + 0.3 * torch.randn(len(clean) - N, 6)
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 6))
    x_val = clean[N:].clone()
    run_training(run_dir, lambda m: m(x_val), F.mse_loss, clean, 6, model=model, x=clean)
    assert losses(run_dir, "mse_loss") == []
    assert len(noisy) == len(x_val)


def test_what_another_model_says_without_the_noise_is_no_label(run_dir: Path) -> None:
    noise = 3 * torch.randn(len(X), generator=torch.Generator().manual_seed(7))
    y = NUMBERS + noise
    x_val, others = X[N:].clone(), NUMBERS[N:].clone()  # of a model that was trained elsewhere
    run_training(run_dir, lambda model: model(x_val), F.mse_loss, y, 1)
    assert losses(run_dir, "mse_loss") == []
    assert len(others) == len(x_val)


def test_a_programs_own_function_is_not_called(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x_val, y_val = X[N:].clone(), NUMBERS[N:].clone()
    original, calls = F.mse_loss, []

    def counting(*args: Any, **kwargs: Any) -> torch.Tensor:
        calls.append(1)
        return original(*args, **kwargs)

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        monkeypatch.setattr(F, "mse_loss", counting)  # after it was listened to
        return F.mse_loss(output, target)

    run_training(run_dir, lambda model: model(x_val), loss, NUMBERS, 1)
    assert len(losses(run_dir, "mse_loss")) == EPOCHS - 1
    assert len(calls) == EPOCHS * N // 32
    assert len(y_val) == len(x_val)


def test_losses_that_are_judged_later_are_of_the_evaluations_line(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), NUMBERS[N:].clone()

    def evaluate(model: nn.Module) -> object:
        return model(x_val)[:, 0] - y_val

    run_training(run_dir, evaluate, F.mse_loss, NUMBERS, 1)
    told = td.Run(run_dir).worker_meta()["sources"]
    functions = {each["what"]: each["function"] for each in told}
    assert functions["evaluation/mse_loss"].endswith(".evaluate")


def test_losses_that_are_judged_later_say_nothing_of_the_mode_by_then(run_dir: Path) -> None:
    x_val, y_val = X[N:].clone(), NUMBERS[N:].clone()
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
    rules = ["batchnorm_momentum", "overfit"]
    run_training(run_dir, lambda m: m(x_val), F.mse_loss, NUMBERS, 1, model=model, rules=rules)
    run = td.Run(run_dir)
    assert len(run.scalars("loss/mse_loss", "eval").values) >= 3
    for name in (name for name in run.names() if name.startswith("loop/modules_in_train")):
        assert not run.scalars(name, "eval").values.any()
    assert len(y_val) == len(x_val)
