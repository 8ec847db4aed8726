"""Losses of several optimizers, of several heads and of several passes are told apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.base.guard import failures

LOSSES = {"rules": [], "collect": ["losses"], "every": 1, "supervise": False}


@pytest.fixture(params=["cpu path", "device path"], autouse=True)
def path(request, monkeypatch):
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")


def recorded(run: td.Run, name: str) -> dict[int, float]:
    found = run.scalars(name)
    return dict(zip(found.steps.tolist(), found.values.tolist(), strict=True))


def close(values: list[float]) -> Any:
    return pytest.approx(values, rel=1e-5)


class Gan:
    """Each step of the discriminator has its number; the generator's come in between."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.generator = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
        self.critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(), nn.Linear(8, 1))
        self.of_generator = torch.optim.Adam(self.generator.parameters(), 1e-3)
        self.of_critic = torch.optim.Adam(self.critic.parameters(), 1e-3)
        self.losses: dict[str, list[float]] = {"critic": [], "generator": []}

    def train(self, rounds: int, critic_steps: int = 1) -> None:
        loss = F.binary_cross_entropy_with_logits
        for number in range(rounds):
            fake = self.generator(torch.randn(6, 3))
            self.of_critic.zero_grad()
            of_real = loss(self.critic(torch.randn(6, 4)), torch.ones(6, 1))
            of_fake = loss(self.critic(fake.detach()), torch.zeros(6, 1))
            (of_real + of_fake).backward()
            self.of_critic.step()
            self.losses["critic"].append((of_real + of_fake).item())
            if number % critic_steps == critic_steps - 1:
                self.of_generator.zero_grad()
                fooled = loss(self.critic(fake), torch.ones(6, 1))
                fooled.backward()
                self.of_generator.step()
                self.losses["generator"].append(fooled.item())


@pytest.mark.parametrize("critic_steps", [1, 3])
def test_the_losses_of_a_gan_are_not_mixed(run_dir, critic_steps):
    gan = Gan()
    with td.watch(gan.critic, run_dir=run_dir, **LOSSES), td.watch(gan.generator):
        gan.train(9, critic_steps)
    run = td.Run(run_dir)
    assert list(recorded(run, "loss").values()) == close(gan.losses["critic"])
    of_generator = recorded(run, "loss@Sequential")
    # Its step of the last round may be after the last step of the critic, which ends steps.
    assert len(of_generator) >= len(gan.losses["generator"]) - 1
    assert list(of_generator.values()) == close(gan.losses["generator"][: len(of_generator)])
    assert list(of_generator) == list(range(critic_steps, 10, critic_steps))[: len(of_generator)]
    function = "loss/binary_cross_entropy_with_logits"
    first, second = recorded(run, function), recorded(run, f"{function}#2")
    total = [a + b for a, b in zip(first.values(), second.values(), strict=True)]
    assert total == close(gan.losses["critic"])
    assert recorded(run, f"{function}@Sequential") == of_generator


def test_one_model_with_two_optimizers(run_dir):
    gan = Gan()
    model = nn.ModuleDict({"critic": gan.critic, "generator": gan.generator})
    with td.watch(model, run_dir=run_dir, **LOSSES):
        gan.train(6)
    run = td.Run(run_dir)
    assert list(recorded(run, "loss").values()) == close(gan.losses["critic"])
    assert list(recorded(run, "loss@generator").values())[:5] == close(gan.losses["generator"][:5])


def test_what_a_model_that_is_not_watched_is_trained_with_is_told_apart(run_dir):
    gan = Gan()
    with td.watch(gan.critic, run_dir=run_dir, **LOSSES):
        gan.train(6)
    run = td.Run(run_dir)
    assert list(recorded(run, "loss").values()) == close(gan.losses["critic"])
    of_other = list(recorded(run, "loss@unwatched").values())
    assert of_other[:5] == close(gan.losses["generator"][:5])


@pytest.mark.parametrize("watched", ["all", "head"])
@pytest.mark.parametrize("order", [["body", "head"], ["head", "body"]])
def test_one_backward_pass_of_two_optimizers_is_of_both(run_dir, watched, order):
    torch.manual_seed(0)
    model = nn.ModuleDict({"body": nn.Linear(4, 6), "head": nn.Linear(6, 3)})
    by_part = {name: torch.optim.SGD(part.parameters(), lr=0.1) for name, part in model.items()}
    wishes = LOSSES | {"collect": ["losses", "labels"]}
    losses = []
    with td.watch(model if watched == "all" else model["head"], run_dir=run_dir, **wishes):
        for step in range(5):
            for optimizer in by_part.values():
                optimizer.zero_grad()
            out = model["head"](model["body"](torch.randn(5, 4)))
            loss = F.cross_entropy(out, torch.tensor([0, 1, 2, 0, 1]))
            loss.backward()
            for name in ["head", "body"] if step == 0 else order:  # the head drives
                by_part[name].step()
            losses.append(loss.item())
    run = td.Run(run_dir)
    assert list(recorded(run, "loss").values()) == close(losses)
    assert list(recorded(run, "loss/cross_entropy").values()) == close(losses)
    assert [name for name in run.names() if "@" in name] == []
    assert run["label/cross_entropy"].steps().tolist() == [0, 1, 2, 3, 4]


def test_calls_of_a_closure_after_the_first_are_of_its_own_step(run_dir):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    first = []
    with td.watch(model, optimizer, run_dir=run_dir, **LOSSES):
        for _ in range(4):
            calls = []

            def closure(calls=calls):
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                calls.append(loss.item())
                return loss

            optimizer.step(closure)
            first.append(calls[0])
    run = td.Run(run_dir)
    assert recorded(run, "loss") == close(dict(enumerate(first)))


def test_a_function_that_is_first_met_in_an_evaluation(run_dir):
    gan = Gan()
    with td.watch(gan.critic, run_dir=run_dir, **LOSSES | {"rules": ["overfit"]}):
        gan.critic.eval()
        with torch.no_grad():
            F.binary_cross_entropy_with_logits(gan.critic(torch.randn(3, 4)), torch.ones(3, 1))
        gan.critic.train()
        gan.train(5)
    assert list(recorded(td.Run(run_dir), "loss").values()) == close(gan.losses["critic"])
    assert failures.get("optimizer", 0) == 0


def test_arguments_of_several_optimizers_are_told_apart(run_dir):
    gan = Gan()
    wishes = LOSSES | {"collect": ["losses", "labels"]}
    with td.watch(gan.critic, run_dir=run_dir, **wishes), td.watch(gan.generator):
        gan.train(6)
    run = td.Run(run_dir)
    name = "label/binary_cross_entropy_with_logits"
    assert set(run[name].values("mean")[2:].tolist()) == {1}
    assert set(run[f"{name}#2"].values("mean").tolist()) == {0}
    assert run[f"{name}@Sequential"].steps().tolist() == [2, 3, 4, 5, 6]  # from what was before


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(4, 2)

    def forward(self, x):
        return self.first(x), self.second(x)


@pytest.mark.parametrize("passes", [1, 2])
def test_two_heads_with_one_loss_function(run_dir, passes):
    torch.manual_seed(0)
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wishes = LOSSES | {"collect": ["losses", "predictions", "labels"]}
    losses = []
    with td.watch(model, optimizer, run_dir=run_dir, **wishes):
        for _ in range(4):
            optimizer.zero_grad()
            first, second = model(torch.randn(5, 4))
            one = F.cross_entropy(first, torch.tensor([0, 1, 2, 0, 1]))
            if passes == 2:
                one.backward(retain_graph=True)
            other = F.cross_entropy(second, torch.tensor([0, 1, 0, 1, 1]))
            (one + other if passes == 1 else other).backward()
            optimizer.step()
            losses.append((one.item(), other.item()))
    run = td.Run(run_dir)
    assert list(recorded(run, "loss/cross_entropy").values()) == close([a for a, _ in losses])
    assert list(recorded(run, "loss/cross_entropy#2").values()) == close([b for _, b in losses])
    if passes == 2:
        assert list(recorded(run, "loss").values()) == close([a for a, _ in losses])
        assert list(recorded(run, "loss#2").values()) == close([b for _, b in losses])
    assert run["prediction/cross_entropy"].info["shape"] == (5, 3)
    assert run["prediction/cross_entropy#2"].info["shape"] == (5, 2)
    assert run["label/cross_entropy#2"].values("max").tolist() == [1, 1, 1, 1]


def test_micro_batches_are_no_further_losses(run_dir):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = []
    with td.watch(model, optimizer, run_dir=run_dir, **LOSSES):
        for _ in range(3):
            optimizer.zero_grad()
            for number in range(4):
                loss = F.cross_entropy(model(torch.randn(5, 4)), torch.zeros(5).long())
                loss.backward()
                first += [loss.item()] if number == 0 else []
            optimizer.step()
    run = td.Run(run_dir)
    assert [name for name in run.names() if name.startswith("loss")] == [
        "loss/cross_entropy",
        "loss",
    ]
    assert list(recorded(run, "loss").values()) == close(first)


def test_very_many_calls_are_cut_off_and_that_is_said(run_dir, capsys):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, **LOSSES):
        for _ in range(3):
            optimizer.zero_grad()
            x = torch.randn(12, 4)
            losses = [F.mse_loss(model(row), torch.zeros(3)) for row in x]
            torch.stack(losses).sum().backward()
            optimizer.step()
    names = [name for name in td.Run(run_dir).names() if name.startswith("loss/")]
    assert names == ["loss/mse_loss", *(f"loss/mse_loss#{number}" for number in range(2, 9))]
    assert capsys.readouterr().err.count("calls of mse_loss in one pass after the 8th") == 1


def test_a_loss_that_is_not_finite_is_known_before_its_step(run_dir):
    """So that the gradients of that step are captured, though nothing else was due."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wishes = LOSSES | {"collect": ["losses", "gradients"], "every": 50}
    with td.watch(model, optimizer, run_dir=run_dir, **wishes):
        for step in range(4):
            optimizer.zero_grad()
            loss = F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3))
            (loss * (float("nan") if step == 2 else 1)).backward()
            optimizer.step()
    steps = td.Run(run_dir)["gradient/weight"].steps().tolist()
    assert steps[0] == 0
    assert 3 in steps


def test_a_validation_that_computes_its_loss_with_gradients_on_is_one(run_dir):
    """Its outputs alone were computed without; the model is back in training mode."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    trained, validated = [], []
    with td.watch(model, optimizer, run_dir=run_dir, **LOSSES | {"rules": ["overfit"]}):
        for step in range(6):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            trained.append(loss.item())
            if step % 2:
                with torch.no_grad():
                    out = model(-x)
                validated.append(F.cross_entropy(out, y).item())
    run = td.Run(run_dir)
    assert list(recorded(run, "loss/cross_entropy").values()) == close(trained)
    found = run.scalars("loss/cross_entropy", "eval")
    assert found.values.tolist() == close(validated)


def test_a_loss_that_never_leads_to_gradients_is_of_the_training(run_dir):
    """Its value is cut off from the model, by mistake; rules have to see that."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, **LOSSES):
        for _ in range(3):
            optimizer.zero_grad()
            out = model(torch.randn(5, 4)).detach().requires_grad_(False)
            loss = F.cross_entropy(out, torch.zeros(5).long()).requires_grad_()
            loss.backward()
            optimizer.step()
    assert td.Run(run_dir)["loss/cross_entropy"].steps().tolist() == [0, 1, 2]


@pytest.mark.parametrize("is_trained_by", [True, False])
def test_what_is_compared_with_the_model_is_no_prediction_of_it(run_dir, is_trained_by):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rules = ["constant_output", "class_imbalance"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(6):
            x = torch.randn(16, 4)
            y = (x[:, 0] > 0).float()
            scores = model(x).squeeze(1)
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(scores, y)
            if is_trained_by:
                loss = loss + F.binary_cross_entropy(scores.sigmoid(), y)
            else:
                F.binary_cross_entropy(torch.full_like(y, 0.5), y)
            loss.backward()
            optimizer.step()
    names = td.Run(run_dir).names()
    assert "prediction/binary_cross_entropy_with_logits" in names
    assert "loss/binary_cross_entropy" in names
    for role in ("prediction", "label"):
        assert (f"{role}/binary_cross_entropy" in names) == is_trained_by
