"""Several trainings in one process, one after the other."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.updates.between import WeightsBetween


def train(model, optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 2)).backward()
        optimizer.step()


def sgd(model, rate: float = 0.01):
    return torch.optim.SGD(model.parameters(), lr=rate)


def test_a_second_model_drives_although_the_first_optimizer_is_alive(run_dir):
    first, second = nn.Linear(4, 2), nn.Linear(4, 2)
    kept = sgd(first)
    with td.watch(first, run_dir=run_dir, every=1, supervise=False):
        train(first, kept, 3)
        with td.watch(second):
            train(second, sgd(second, 0.02), 4)
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(7))
    assert run["gradient/weight"].steps().tolist() == [0, 1, 2]
    assert run["gradient/Linear.weight"].steps().tolist() == [3, 4, 5, 6]
    assert [o["settings"]["lr"] for o in run.worker_meta()["optimizers"]] == [0.02]


def test_optimizers_that_take_turns_are_one_training(run_dir):
    first, second = nn.Linear(4, 2), nn.Linear(4, 2)
    one, other = sgd(first), sgd(second)
    with td.watch(first, run_dir=run_dir, every=1, supervise=False), td.watch(second):
        for _ in range(3):
            train(first, one, 1)
            train(second, other, 2)
    assert len(td.Run(run_dir).worker_meta()["optimizers"]) == 2
    # The fourth is what the second optimizer did after the first one's last step.
    assert td.Run(run_dir).steps().tolist() == [0, 1, 2, 3]


def test_a_loop_that_ended_leaves_the_steps_to_the_next_optimizer(run_dir):
    model = nn.Linear(4, 2)
    kept = sgd(model)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        train(model, kept, 3)
        recordings.current.loop_ended(ValueError("the first one"))
        recordings.current.loop_ended(ValueError("of something else"))
        train(model, sgd(model, 0.5), 2)
        recordings.current.loop_ended()
        train(model, kept, 1)
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(6))
    assert run["gradient/weight"].steps().tolist() == list(range(6))
    errors = [event["data"] for event in run.events if event["kind"] == "exception"]
    assert [(error["message"], error["step"]) for error in errors] == [("the first one", 3)]


@pytest.mark.parametrize("model_again", [True, False])
def test_zero_code_follows_trainings_whose_optimizers_stay_alive(model_again, forked, run_dir):
    source = (
        "import torch\n"
        "kept = []\n"
        "model = torch.nn.Linear(4, 1)\n"
        "for fold in range(3):\n"
        f"    if not {model_again}: model = torch.nn.Linear(4, 1)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    kept.append((model, optimizer))\n"
        "    for _ in range(3):\n"
        "        optimizer.zero_grad()\n"
        "        model(torch.ones(2, 4)).sum().backward()\n"
        "        optimizer.step()\n"
    )
    done = forked(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert td.Run(run_dir).steps().tolist() == list(range(9))


def loop(model, optimizer, steps: int) -> None:
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(8, 12, generator=generator)
        optimizer.zero_grad()
        F.mse_loss(model(x), x[:, :6]).backward()
        optimizer.step()


def facts(run_dir, name: str):
    run = td.Run(run_dir)
    if name not in run:
        return []
    steps, values = run.scalars(name)
    return list(zip(steps.tolist(), values.tolist(), strict=True))


RULES = ["resume_lost_optimizer_state"]


def test_an_optimizer_of_the_same_settings_for_the_same_parameters_is_told(run_dir):
    model = nn.Linear(12, 6)
    with td.watch(model, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(3):
            loop(model, torch.optim.Adam(model.parameters(), lr=0.05), 10)
    assert facts(run_dir, "loop/optimizer_made_anew") == [(10, 1), (20, 2)]
    assert facts(run_dir, "loop/trainings") == [(10, 2), (20, 3)]
    assert td.Run(run_dir).steps().tolist() == list(range(30))


@pytest.mark.parametrize("how", ["in place", "data", "assigned", "kept alive"])
def test_weights_that_are_written_between_make_it_no_loss(run_dir, how: str):
    model = nn.Linear(12, 6)
    kept = []
    with td.watch(model, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(5):
            before = [p.detach().clone() for p in model.parameters()]
            optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
            kept.append(optimizer if how == "kept alive" else None)
            loop(model, optimizer, 10)
            for parameter, old in zip(model.parameters(), before, strict=True):
                if how == "data":
                    parameter.data.lerp_(old, 0.5)
                elif how == "assigned":
                    parameter.data = old.lerp(parameter.data, 0.5)
                else:
                    with torch.no_grad():
                        parameter.copy_(old.lerp(parameter, 0.5))
    assert facts(run_dir, "loop/optimizer_made_anew") == [(10, 1)]


@pytest.mark.parametrize("how", ["clamped", "swapped and put back", "one of them"])
def test_what_leaves_the_weights_as_they_were_is_no_write(run_dir, how: str):
    model = nn.Sequential(nn.Linear(12, 6), nn.BatchNorm1d(6))
    with td.watch(model, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(4):
            loop(model, torch.optim.Adam(model.parameters(), lr=0.05), 10)
            with torch.no_grad():
                for parameter in model.parameters():
                    if how == "clamped":
                        parameter.clamp_(-100, 100)
                    elif how == "swapped and put back":
                        own = parameter.clone()
                        parameter.zero_()
                        parameter.copy_(own)
                if how == "one of them":
                    model[1].bias.zero_()
    assert facts(run_dir, "loop/optimizer_made_anew") == [(10, 1), (20, 2), (30, 3)]


def test_ends_of_steps_are_looked_at_for_one_training_only(run_dir, monkeypatch):
    looks = []
    original = WeightsBetween.stepped
    monkeypatch.setattr(WeightsBetween, "stepped", lambda self: looks.append(1) or original(self))
    model = nn.Linear(12, 6)
    with td.watch(model, run_dir=run_dir, supervise=False, rules=RULES):
        for steps in (10, 12, 14, 16):
            loop(model, torch.optim.Adam(model.parameters(), lr=0.05), steps)
    assert len(looks) == 12


def test_a_long_training_is_not_looked_at_to_its_end():
    parameter = nn.Parameter(torch.zeros(3))
    between = WeightsBetween()
    between.begin([parameter], 20)
    for _ in range(51):
        between.stepped()
    assert not between.is_on
    assert not between.end()


def test_an_optimizer_that_its_schedule_keeps_alive_is_taken_over_at_once(run_dir):
    model = nn.Linear(12, 6)
    kept = []
    with td.watch(model, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(3):
            kept.append(torch.optim.Adam(model.parameters(), lr=0.05))
            loop(model, kept[-1], 20)
    # Two steps of each new one are missing: until then it may be one that takes turns.
    assert facts(run_dir, "loop/optimizer_made_anew") == [(20, 1), (38, 2)]
    assert td.Run(run_dir).steps().tolist() == list(range(56))


def test_optimizers_of_one_model_that_take_turns_are_not_made_anew(run_dir):
    model = nn.Linear(12, 6)
    one, other = (torch.optim.Adam(model.parameters(), lr=0.05) for _ in range(2))
    with td.watch(model, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(8):
            loop(model, one, 12)
            loop(model, other, 12)
    # The second one takes over once; when the first comes back, they are seen to take turns.
    assert facts(run_dir, "loop/optimizer_made_anew") == [(12, 1)]


@pytest.mark.parametrize("how", ["another rate", "sgd", "another model"])
def test_another_optimizer_is_not_made_anew(run_dir, how: str):
    model = nn.Linear(12, 6)
    watchers = [td.watch(model, run_dir=run_dir, supervise=False, rules=RULES)]
    for round_ in range(3):
        if how == "another model" and round_ > 0:
            model = nn.Linear(12, 6)
            watchers.append(td.watch(model))
        if how == "sgd":
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        else:
            rate = 0.05 / (round_ + 1) if how == "another rate" else 0.05
            optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        loop(model, optimizer, 10)
        del optimizer
    for watcher in watchers:
        watcher.detach()
    assert facts(run_dir, "loop/optimizer_made_anew") == []
    assert facts(run_dir, "loop/trainings") == [(10, 2), (20, 3)]
    assert facts(run_dir, "loop/new_training") == []  # of so few steps each is a round of one


def test_gradients_that_are_set_by_hand_are_not_kept_ones(run_dir):
    first, second = nn.Linear(12, 6), nn.Linear(6, 2)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in (first, second)]
    parameters = [*first.parameters(), *second.parameters()]
    with (
        td.watch(first, run_dir=run_dir, supervise=False, rules=["gradients_not_cleared"]),
        td.watch(second),
    ):
        for _ in range(8):
            loss = second(first(torch.randn(8, 12))).square().mean()
            for parameter, gradient in zip(
                parameters, torch.autograd.grad(loss, parameters), strict=True
            ):
                parameter.grad = gradient
            for optimizer in optimizers:
                optimizer.step()
    assert [name for name in td.Run(run_dir).names() if "gradients_kept" in name] == []


def trained_copy(server, rows):
    client = copy.deepcopy(server)
    optimizer = sgd(client)
    for _ in range(2):
        optimizer.zero_grad()
        F.mse_loss(client(rows), rows[:, :2]).backward()
        optimizer.step()
    return client


@pytest.mark.parametrize("is_in_place", [True, False])
def test_gradients_that_the_loop_sets_are_not_summed(run_dir, is_in_place):
    server = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(server.parameters(), lr=0.01)
    others = nn.Linear(4, 2)
    kept = sgd(others)
    rules = ["gradients_not_cleared"]
    with td.watch(server, run_dir=run_dir, supervise=False, rules=rules), td.watch(others):
        train(others, kept, 1)
        for _ in range(12):
            client = trained_copy(server, torch.randn(8, 4))
            for ours, theirs in zip(server.parameters(), client.parameters(), strict=True):
                moved = (ours - theirs).detach()
                if is_in_place and ours.grad is not None:
                    ours.grad.copy_(moved)
                else:
                    ours.grad = moved
            optimizer.step()
    told = [
        value
        for name in td.Run(run_dir).names()
        if "gradient_added_to" in name or "gradients_kept" in name
        for _, value in facts(run_dir, name)
    ]
    assert told
    assert set(told) == {0.0}


def test_gradients_of_inference_mode_are_looked_at_without_versions(run_dir, monkeypatch):
    monkeypatch.setenv("TRAINDBG_STRICT", "1")
    server = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(server.parameters(), lr=0.01)
    with td.watch(server, run_dir=run_dir, supervise=False, rules=["gradients_not_cleared"]):
        for _ in range(8):
            client = trained_copy(server, torch.randn(8, 4))
            with torch.inference_mode():
                for ours, theirs in zip(server.parameters(), client.parameters(), strict=True):
                    ours.grad = ours - theirs
            optimizer.step()
    assert td.Run(run_dir).names("^loop/")


@pytest.mark.parametrize("takes", ["backward", "backward of another first", "grad"])
def test_whether_a_pass_adds_to_the_gradient_that_is_there(run_dir, takes):
    model, other = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = sgd(model)
    with td.watch(model, run_dir=run_dir, supervise=False, rules=["gradients_not_cleared"]):
        for _ in range(6):
            loss = F.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 2))
            if takes == "backward of another first":
                F.mse_loss(other(torch.randn(8, 4)), torch.zeros(8, 2)).backward()
            if takes != "grad":
                loss.backward()
            else:
                found = torch.autograd.grad(loss, list(model.parameters()))
                for parameter, gradient in zip(model.parameters(), found, strict=True):
                    parameter.grad = gradient
            optimizer.step()
    first = {value for _, value in facts(run_dir, "loop/gradient_added_to")}
    later = {value for _, value in facts(run_dir, "loop/gradient_added_to_later")}
    # What is taken aside is no pass of this training.
    assert first == (set() if takes == "grad" else {float(takes == "backward")})
    assert later == ({1.0} if takes == "backward of another first" else set())


@pytest.mark.parametrize("is_cleared", [True, False])
def test_each_of_two_optimizers_is_followed(run_dir, is_cleared: bool):
    generator, critic = nn.Linear(3, 2), nn.Linear(2, 1)
    of_generator = torch.optim.Adam(generator.parameters(), lr=0.01)
    of_critic = torch.optim.Adam(critic.parameters(), lr=0.01)
    with (
        td.watch(generator, run_dir=run_dir, supervise=False, rules=["gradients_not_cleared"]),
        td.watch(critic),
    ):
        for _ in range(8):
            of_generator.zero_grad()
            made = generator(torch.randn(16, 3))
            critic(made).mean().backward()
            of_generator.step()
            if is_cleared:
                of_critic.zero_grad()
            (critic(made.detach()).mean() - critic(torch.randn(16, 2)).mean()).backward()
            of_critic.step()
    name = "loop/gradients_kept/Linear.bias"
    values = [value for _, value in facts(run_dir, name)]
    assert len(values) >= 5
    assert set(values) == {0.0 if is_cleared else 1.0}
    of_other = [value for _, value in facts(run_dir, "loop/gradients_kept/bias")]
    assert len(of_other) >= 5
    assert set(of_other) == {0.0}


def taking_turns(run_dir, between=lambda actor, critic: None, before=lambda actor, critic: None):
    """A critic learns, then an actor by way of the critic."""
    actor, critic = nn.Linear(3, 2), nn.Linear(2, 1, bias=False)
    of_actor = torch.optim.Adam(actor.parameters(), lr=0.01)
    of_critic = torch.optim.Adam(critic.parameters(), lr=0.01)
    with (
        td.watch(critic, run_dir=run_dir, supervise=False, rules=["gradients_not_cleared"]),
        td.watch(actor),
    ):
        for _ in range(8):
            before(of_actor, of_critic)
            critic(torch.randn(16, 2)).square().mean().backward()
            of_critic.step()
            between(of_actor, of_critic)
            critic(actor(torch.randn(16, 3))).mean().backward()
            of_actor.step()
    return {value for _, value in facts(run_dir, "loop/gradients_of_another/weight")}


def test_a_critic_that_steps_by_what_the_actor_left(run_dir):
    def between(of_actor, of_critic):
        of_critic.zero_grad()
        of_actor.zero_grad()

    assert 1 in taking_turns(run_dir, between=between)
    agree = [value for _, value in facts(run_dir, "loop/gradients_that_agree/weight")]
    assert agree
    assert all(-1.001 <= value <= 1.001 for value in agree)


@pytest.mark.parametrize("to_none", [True, False])
def test_a_critic_that_is_cleared_before_its_pass(run_dir, to_none):
    def before(of_actor, of_critic):
        of_actor.zero_grad(set_to_none=to_none)
        of_critic.zero_grad(set_to_none=to_none)

    def between(of_actor, of_critic):
        of_actor.zero_grad(set_to_none=to_none)

    assert taking_turns(run_dir, between, before) == {0}


def test_a_trunk_that_two_losses_train(run_dir):
    trunk, head = nn.Linear(3, 4), nn.Linear(4, 1)
    of_head = torch.optim.SGD(head.parameters(), lr=0.01)
    of_trunk = torch.optim.SGD(trunk.parameters(), lr=0.01)
    with (
        td.watch(trunk, run_dir=run_dir, supervise=False, rules=["gradients_not_cleared"]),
        td.watch(head),
    ):
        for _ in range(8):
            of_head.zero_grad()
            of_trunk.zero_grad()
            head(trunk(torch.randn(8, 3))).square().mean().backward()
            of_head.step()
            trunk(torch.randn(8, 3)).square().mean().backward()
            of_trunk.step()
    names = [name for name in td.Run(run_dir).names() if "gradients_of_another" in name]
    assert {value for name in names for _, value in facts(run_dir, name)} <= {0}


def test_running_statistics_that_stand_still(run_dir):
    def train_with(model, directory):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        rules = ["batchnorm_momentum"]
        with td.watch(model, optimizer, run_dir=directory, supervise=False, rules=rules):
            for _ in range(60):
                x = torch.randn(16, 4) + 1
                optimizer.zero_grad()
                F.mse_loss(model(x), x[:, :2]).backward()
                optimizer.step()

    def model_of(momentum: float):
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=momentum), nn.Linear(8, 2))

    train_with(model_of(0.0), run_dir / "zero")
    assert facts(run_dir / "zero", "loop/norm_standing/1")
    train_with(model_of(0.1), run_dir / "usual")
    assert facts(run_dir / "usual", "loop/norm_standing/1") == []
    # Statistics that came with the weights and are meant to stay.
    loaded = model_of(0.0)
    loaded[1].running_mean.fill_(1.0)
    train_with(loaded, run_dir / "loaded")
    assert facts(run_dir / "loaded", "loop/norm_standing/1") == []


SECOND = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
kept = []


def train(model, steps, healthy=True):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        out = model(x)
        F.cross_entropy(out if healthy else out.softmax(1), (x.sum(1) > 0).long()).backward()
        optimizer.step()
    if KEPT:
        kept.append((model, optimizer))


train(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), 77)
train(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), 60, healthy=False)
"""


@pytest.mark.parametrize("is_kept", [False, True])
def test_the_beginning_of_the_training_of_another_model_is_looked_at(is_kept, forked, run_dir):
    done = forked(f"KEPT = {is_kept}\n{SECOND}", recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    run = td.Run(run_dir)
    assert run.scalars("loop/new_training")[0].tolist() == [77]
    assert run.scalars("loop/new_training")[1].tolist() == [2.0]
    # Its first steps were due, as those of the first one; where that is gone, names are the same.
    assert run["gradient/0.weight"].steps().tolist()[:3] == [0, 1, 2]
    second = "gradient/Sequential.0.weight" if is_kept else "gradient/0.weight"
    for name in (second, "prediction/cross_entropy"):
        assert {77, 78, 79} <= set(run[name].steps().tolist()), name


def test_a_model_that_is_trained_again_joins_the_one_after_it(forked, run_dir):
    source = """
import torch
from torch import nn


def steps(model, optimizer, number):
    for _ in range(number):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


first, second = nn.Linear(4, 2), nn.Linear(4, 2)
one = torch.optim.SGD(first.parameters(), lr=0.01)
steps(first, one, 40)
other = torch.optim.SGD(second.parameters(), lr=0.01)
for _ in range(20):
    steps(second, other, 1)
    steps(first, one, 1)
"""
    done = forked(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    run = td.Run(run_dir)
    assert run.scalars("loop/new_training")[0].tolist() == [40]  # once, whoever steps then
    assert len(run.worker_meta()["optimizers"]) == 2


def test_an_exception_between_trainings_harms_neither(forked, run_dir):
    source = """
import torch
from torch import nn


def fit(rate):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for step in range(40):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        if rate < 0.1 and step == 35:
            raise ValueError(rate)
        optimizer.step()


for rate in (0.05, 0.2, 0.3):
    try:
        fit(rate)
    except ValueError:
        pass
"""
    done = forked(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(115))
    assert run.scalars("loop/new_training")[1].tolist()[-1] == 3.0


def test_models_that_live_for_a_stage_beside_one_that_goes_on(forked, run_dir):
    source = """
import torch
from torch import nn


def steps(model, optimizer, number):
    for _ in range(number):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


encoder = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
one = torch.optim.SGD(encoder.parameters(), lr=0.01)
for epoch in range(4):
    steps(encoder, one, 50)
    probe = nn.Linear(4, 2)
    steps(probe, torch.optim.SGD(probe.parameters(), lr=0.01), 20)
"""
    done = forked(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    # Each stage is seen but for the steps until it is known whose steps end it.
    assert len(td.Run(run_dir).steps()) >= 4 * 70 - 20


def test_the_loaders_of_a_training_are_its_own(forked, run_dir):
    source = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(rows, batch, epochs):
    x = torch.randn(rows, 4)
    loader = DataLoader(TensorDataset(x, x[:, :2]), batch_size=batch, shuffle=True)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for a, b in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(a), b).backward()
            optimizer.step()


fit(320, 10, 2)
fit(64, 64, 40)
"""
    done = forked(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    run = td.Run(run_dir)
    assert run.scalars("loop/new_training")[0].tolist() == [64]
    steps, batches = run.scalars("loop/batches_in_loader")
    told = dict(zip(steps.tolist(), batches.tolist(), strict=True))
    assert told[0] == 32.0
    assert told[65] == 1.0


@pytest.mark.parametrize("has_unused", [False, True])
@pytest.mark.parametrize("to_none", [False, True])
@pytest.mark.parametrize("is_too_soon", [True, False])
def test_gradients_that_are_taken_away_between_the_steps_of_two_optimizers(
    run_dir, is_too_soon: bool, to_none: bool, has_unused: bool
):
    model = nn.Sequential(nn.Linear(12, 6), nn.Linear(6, 2))
    first, second = (torch.optim.Adam(layer.parameters(), lr=0.01) for layer in model)
    if has_unused:  # the smallest of its optimizer, which no pass ever reaches
        model[1].gain = nn.Parameter(torch.ones(()))
        second.add_param_group({"params": [model[1].gain]})
    with td.watch(model, run_dir=run_dir, supervise=False, rules=["step_without_gradient"]):
        for _ in range(8):
            model(torch.randn(8, 12)).square().mean().backward()
            first.step()
            if is_too_soon:
                model.zero_grad(set_to_none=to_none)
            second.step()
            model.zero_grad(set_to_none=to_none)
    smallest = "1.gain" if has_unused else "1.bias"
    of_second = [value for _, value in facts(run_dir, f"loop/gradients_cleared/{smallest}")]
    assert len(of_second) >= 5
    assert set(of_second) == {float(is_too_soon)}
    assert {value for _, value in facts(run_dir, "loop/gradients_cleared/0.bias")} == {0.0}


class WithGradientsOfItsOwn(torch.optim.Optimizer):
    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.parameters(), {"lr": 0.01})

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.sub_(0.01 * parameter)


@pytest.mark.parametrize("how", ["frozen so", "of another pass", "its own"])
def test_gradients_that_are_gone_for_a_reason(run_dir, how: str):
    model = nn.Sequential(nn.Linear(12, 6), nn.Linear(6, 2))
    first = torch.optim.Adam(model[0].parameters(), lr=0.01)
    second = (
        WithGradientsOfItsOwn(model[1])
        if how == "its own"
        else torch.optim.Adam(model[1].parameters(), lr=0.01)
    )
    with td.watch(model, run_dir=run_dir, supervise=False, rules=["step_without_gradient"]):
        for _ in range(8):
            out = model(torch.randn(8, 12))
            out.square().mean().backward()
            if how == "frozen so":
                second.zero_grad()
            elif how == "of another pass":
                model.zero_grad()
                model[0](torch.randn(8, 12)).square().mean().backward()
            first.step()
            if how == "its own":
                model.zero_grad()
            second.step()
            model.zero_grad()
    assert [value for _, value in facts(run_dir, "loop/gradients_cleared/1.bias") if value] == []
