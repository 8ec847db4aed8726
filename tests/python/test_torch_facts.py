"""Facts about optimizers, numbers and what a model returns: real trainings, with twins."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.evaluations.module_modes import acts_by_mode
from traindbg.hooks.torch.losses.collapse import directions_of, in_order
from traindbg.hooks.torch.updates.resume import checkpoints

Answer = tuple[list[int], list[float]]


def data(step: int, samples: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(samples, 12, generator=generator)
    return x, (x[:, 0] > 0).long()


def fact(run_dir: Path, name: str) -> Answer:
    run = td.Run(run_dir)
    if name not in run:
        return [], []
    steps, values = run.scalars(name)
    return [int(step) for step in steps], [float(value) for value in values]


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: int,
    loss_of: Callable[[nn.Module, int], torch.Tensor] | None = None,
) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        if loss_of is None:
            x, y = data(step)
            loss = F.cross_entropy(model(x), y)
        else:
            loss = loss_of(model, step)
        loss.backward()
        optimizer.step()


def mlp(*between: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 32), *(between or (nn.ReLU(),)), nn.Linear(32, 3))


@pytest.mark.parametrize(
    ("how", "lost"),
    [
        ("forgotten", [0, 2]),
        ("loaded", [0]),
        ("another_rate", [0]),
        ("sgd", [0]),
        ("fresh", [0]),
        ("schedule_written_out", [0, 2]),
        ("file_of_a_schedule_written_out", [0, 2]),
        ("file_of_another_rate", [0]),
        ("made_alike_and_lowered", [0]),
    ],
)
def test_an_optimizer_that_begins_anew_on_loaded_weights(
    tmp_path: Path, how: str, lost: list[int]
) -> None:
    torch.manual_seed(1)

    def make(model: nn.Module, rate: float) -> torch.optim.Optimizer:
        if how == "sgd":
            return torch.optim.SGD(model.parameters(), lr=rate)
        return torch.optim.Adam(model.parameters(), lr=rate)

    model = mlp()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = make(model, 0.01)
        train(model, optimizer, 15)
        file = io.BytesIO()
        if how.startswith(("file", "schedule")):
            optimizer.param_groups[0]["lr"] = 0.004
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        del optimizer
        file.seek(0)
        if how.startswith("file"):  # of another process
            checkpoints.clear()
        checkpoint = torch.load(file)
        if how != "fresh":
            model.load_state_dict(checkpoint["model"])
        optimizer = make(model, 0.001 if how == "another_rate" else 0.01)
        if how.endswith("schedule_written_out"):
            optimizer.param_groups[0]["lr"] = 0.0039
        elif how == "made_alike_and_lowered":  # for a second stage
            optimizer.param_groups[0]["lr"] = 0.001
        elif how == "file_of_another_rate":
            optimizer.param_groups[0]["lr"] = 0.005
        if how == "loaded":
            optimizer.load_state_dict(checkpoint["optimizer"])
        train(model, optimizer, 15)
    _, values = fact(tmp_path / "run", "loop/optimizer_state_lost")
    assert values == lost
    if how == "forgotten":
        assert fact(tmp_path / "run", "loop/trainings") == ([15], [2])
    assert not checkpoints._at_hand  # forgotten with the last watcher


@pytest.mark.parametrize("is_loaded", [True, False])
def test_adagrad_that_begins_anew(tmp_path: Path, is_loaded: bool) -> None:
    """It makes its state when it is made itself, with no step counted."""
    model = mlp()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
        train(model, optimizer, 15)
        weights, state = model.state_dict(), optimizer.state_dict()
        del optimizer
        model.load_state_dict(weights)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
        if is_loaded:
            optimizer.load_state_dict(state)
        train(model, optimizer, 15)
    _, values = fact(tmp_path / "run", "loop/optimizer_state_lost")
    assert values == ([0] if is_loaded else [0, 2])


class WritesToData(torch.optim.Adam):
    """No version tells of what it writes."""

    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["step"] = self.state[parameter].get("step", 0) + 1
                parameter.data.sub_(parameter.grad, alpha=group["lr"])


@pytest.mark.parametrize(
    ("how", "lost"),
    [
        ("another", [0, 3]),
        ("weights_after_it", [0, 3]),
        ("with_another_rate", [0]),
        ("it_steps", [0]),
        ("it_stepped", [0, 2]),
        ("it_stepped_and_is_gone", [0, 2]),
        ("it_stepped_unseen", [0, 2]),
    ],
)
def test_the_state_was_given_to_another_optimizer(
    tmp_path: Path, how: str, lost: list[int]
) -> None:
    torch.manual_seed(1)
    kind = WritesToData if how == "it_stepped_unseen" else torch.optim.Adam
    model = mlp()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = kind(model.parameters(), lr=0.01)
        train(model, optimizer, 15)
        weights, state = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        if how != "weights_after_it":
            model.load_state_dict(weights)
        optimizer = kind(model.parameters(), lr=0.01)
        optimizer.load_state_dict(state)
        if how == "weights_after_it":
            model.load_state_dict(weights)
        kept = None
        if how.startswith("it_stepped"):  # and then there is a second phase, from the best weights
            train(model, optimizer, 15)
            weights = copy.deepcopy(model.state_dict())
            train(model, optimizer, 5)
            model.load_state_dict(weights)
            kept = None if how == "it_stepped_and_is_gone" else optimizer
        if how != "it_steps":
            optimizer = kind(model.parameters(), lr=0.001 if how == "with_another_rate" else 0.01)
        train(model, optimizer, 15)
        del kept
    _, values = fact(tmp_path / "run", "loop/optimizer_state_lost")
    assert values == lost


def normed() -> nn.Sequential:
    return mlp(nn.BatchNorm1d(32), nn.ReLU())


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ("teacher", {}),  # nothing of the step trains it
        ("one of two", {"modules_in_eval": 0}),
        ("both", {"modules_in_eval": 2}),
        ("part of what is trained", {"loaded_norms_in_eval": 1}),
    ],
)
def test_which_models_are_in_evaluation_mode(
    tmp_path: Path, which: str, told: dict[str, float]
) -> None:
    first, second = normed(), nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    first.eval()
    if which in ("both", "teacher"):
        second.eval()
    if which == "teacher":
        student = mlp()
        optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
        models = [student, first]
    else:
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
        models = [first] if which.startswith("part") else [first, second]

    def loss_of(_: nn.Module, step: int) -> torch.Tensor:
        x, y = data(step)
        if which == "teacher":
            with torch.no_grad():
                wanted = first(x).softmax(1)
            return F.cross_entropy(student(x), wanted)
        return F.cross_entropy(second(first(x)), y)

    watchers = [
        td.watch(model, run_dir=tmp_path / "run", supervise=False)
        if index == 0
        else td.watch(model)
        for index, model in enumerate(models)
    ]
    train(models[0], optimizer, 4, loss_of)
    for watcher in watchers:
        watcher.detach()
    run = td.Run(tmp_path / "run")
    found = {
        name.split("/")[1]: float(run.scalars(name).values[0])
        for name in run.names()
        if name.startswith(("loop/modules_in_eval", "loop/loaded_norms_in_eval"))
    }
    assert found == told


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("never seen a batch", {1}),
        ("trained before", set()),
        ("in training", set()),
        ("of a teacher", set()),
    ],
)
def test_norms_that_stay_in_evaluation_mode_in_a_model_that_trains(
    tmp_path: Path, how: str, told: set[float]
) -> None:
    model = normed()
    norm = next(module for module in model if isinstance(module, nn.BatchNorm1d))
    if how == "trained before":
        model(data(99)[0])
    norm.train(how == "in training")
    if how == "of a teacher":
        model = nn.Sequential(model.requires_grad_(False), nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False):
        train(model, optimizer, 4)
    run = td.Run(tmp_path / "run")
    values = {
        float(value)
        for name in run.names()
        if name.startswith("loop/norms_held_back")
        for value in run.scalars(name).values
    }
    assert values == told


@pytest.mark.parametrize(("how", "told"), [("drawn", 1), ("trained", 0), ("loaded", 0)])
def test_whether_what_is_trained_is_as_it_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, told: float
) -> None:
    monkeypatch.setattr(checkpoints, "from_the_start", True)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if how == "trained":
        train(model, optimizer, 30)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False):
        if how == "loaded":
            file = io.BytesIO()
            torch.save(mlp().state_dict(), file)
            file.seek(0)
            model.load_state_dict(torch.load(file))
        train(model, optimizer, 3)
    _, values = fact(tmp_path / "run", "loop/trained_are_fresh")
    assert values == [told]


@pytest.mark.parametrize(
    ("how", "is_loaded"), [("drawn", 0), ("loaded", 1), ("trained before", 1), ("given", 1)]
)
def test_weights_without_an_optimizer_that_may_come_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, is_loaded: int
) -> None:
    monkeypatch.setattr(checkpoints, "from_the_start", True)
    model = mlp()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        nn.init.normal_(model[0].weight, std=0.3)  # as no initialiser of PyTorch's does
        if how == "loaded":
            model[0].load_state_dict({k: v.clone() for k, v in model[0].state_dict().items()})
        if how == "given":
            model[0].weight = nn.Parameter(torch.randn(32, 12) * 0.3)
        if how == "trained before":
            with torch.no_grad():
                for _ in range(10):
                    model[0].weight.add_(0.01 * torch.randn(32, 12))
        train(model, torch.optim.SGD(model[2].parameters(), lr=0.01), 4)
    _, values = fact(tmp_path / "run", "loop/not_in_optimizer_loaded")
    assert values
    assert set(values) == {is_loaded}


@pytest.mark.parametrize(("first", "is_loaded"), [("all", 1), ("head", 0)])
def test_biases_that_an_optimizer_had_in_an_earlier_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, is_loaded: int
) -> None:
    monkeypatch.setattr(checkpoints, "from_the_start", True)
    model = mlp()
    model[0].weight.requires_grad_(False)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        of_stage = model if first == "all" else model[2]
        train(model, torch.optim.SGD(of_stage.parameters(), lr=0.1), 4)
        train(model, torch.optim.SGD(model[2].parameters(), lr=0.1), 4)
    _, values = fact(tmp_path / "run", "loop/not_in_optimizer_loaded")
    assert values
    assert set(values) == {is_loaded}


def test_what_is_loaded_is_loaded_as_ever(tmp_path: Path) -> None:
    model = mlp()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        result = model.load_state_dict(mlp().state_dict(), strict=False)
        assert result.missing_keys == []
        assert result.unexpected_keys == []
        with pytest.raises(RuntimeError, match="Missing key"):
            model.load_state_dict({})
    assert torch.load.__module__ == "torch.serialization"


class Latents(nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.both = nn.Linear(12, 8)
        self.mean, self.spread = nn.Linear(12, 4), nn.Linear(12, 4)
        self.decode = nn.Linear(4, 12)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if self.form == "chunk":
            mean, log_var = self.both(x).chunk(2, 1)
        else:
            mean, log_var = self.mean(x), self.spread(x)
        if self.form == "softplus":
            deviation = F.softplus(log_var)
        elif self.form == "log_deviation":
            deviation = log_var.exp()
        elif self.form == "clamped":  # which holds it, whatever the layer gives
            deviation = (0.5 * (log_var + 6).clamp(-1, 1)).exp()
        elif self.form == "offset":
            deviation = (0.5 * (log_var - 5)).exp()
        elif self.form == "precision":
            deviation = (-0.5 * log_var).exp()
        elif self.form == "root":
            deviation = (log_var.exp() + 1e-6).sqrt()
        else:
            deviation = (0.5 * log_var).exp()
        if self.form == "normal":
            z = torch.distributions.Normal(mean, deviation).rsample()
        else:
            z = mean + torch.randn_like(mean) * deviation
        return self.decode(z), mean, deviation


@pytest.mark.parametrize(
    ("form", "layer"),
    [
        ("log_variance", "mean"),
        ("log_deviation", "mean"),
        ("softplus", "mean"),
        ("clamped", "mean"),
        ("offset", "mean"),
        ("precision", "mean"),
        ("root", "mean"),
        ("wide prior", "mean"),
        ("chunk", "both"),
        ("normal", "mean"),
        ("policy", ""),
    ],
)
def test_what_latent_variables_tell_of_a_sample(tmp_path: Path, form: str, layer: str) -> None:
    torch.manual_seed(2)
    model = Latents(form)
    deviations: list[float] = []
    nats: list[float] = []

    def loss_of(module: nn.Module, step: int) -> torch.Tensor:
        x, _ = data(step)
        made, mean, deviation = module(x)
        noise = deviation.detach().square()
        deviations.append(noise.mean().sqrt().item())
        of_mean = mean.detach().var(0, unbiased=False)
        nats.append((of_mean / noise.mean(0)).log1p().sum().item() / 2)
        loss = (made - x).square().mean()
        if form == "wide prior":
            of = torch.distributions.Normal
            kl = torch.distributions.kl_divergence(of(mean, deviation), of(1.0, 3.0))
            loss = loss + 0.01 * kl.sum(1).mean()
        elif form != "policy":  # of that nothing is asked of the mean
            variance = deviation.square()
            kl = -0.5 * (1 + variance.log() - mean.pow(2) - variance).sum(1).mean()
            loss = loss + 0.01 * kl
        return loss

    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.Adam(model.parameters(), lr=0.01), 12, loss_of)
    run = td.Run(tmp_path / "run")
    told = [name for name in run.names() if name.startswith("loop/latent_information/")]
    assert told == ([f"loop/latent_information/{layer}"] if layer else [])
    if layer:
        steps, values = fact(tmp_path / "run", told[0])
        assert steps[0] <= 2
        assert values == pytest.approx([nats[step] for step in steps], rel=1e-4)
        steps, values = fact(tmp_path / "run", f"loop/latent_deviation/{layer}")
        unit = 3 if form == "wide prior" else 1
        assert values == pytest.approx([deviations[step] / unit for step in steps], rel=1e-5)


class BesideLearned(nn.Module):
    """The prior of the latent variables is learned from a part of the input."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.prior, self.both = nn.Linear(6, 8), nn.Linear(12, 8)
        self.decode = nn.Linear(4, 12)

    def once(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        of = torch.distributions.Normal
        mean, log_std = self.both(x).chunk(2, 1)
        prior_mean, prior_log_std = self.prior(x[:, :6]).chunk(2, 1)
        z = mean + log_std.exp() * torch.randn_like(mean)
        if self.form == "density":  # of what was drawn: a part of it is noise for ever
            penalty = of(mean, log_std.exp()).log_prob(z)
        elif self.form == "distributions":
            posterior, prior = of(mean, log_std.exp()), of(prior_mean, prior_log_std.exp())
            penalty = torch.distributions.kl_divergence(posterior, prior)
        else:
            ratio = (2 * (log_std - prior_log_std)).exp()
            away = prior_mean - mean if self.form == "turned" else mean - prior_mean
            distance = away**2 / (2 * prior_log_std).exp()
            penalty = 0.5 * (ratio + distance - 1) - (log_std - prior_log_std)
        # How far the means are from what the prior says, beside the noise.
        away = (mean - prior_mean).detach().var(0, unbiased=False)
        noise = (2 * log_std).exp().detach().mean(0)
        self.nats = (away / noise).log1p().sum().item() / 2
        return self.decode(z), penalty.sum(1).mean()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        made, penalty = self.once(x)
        if self.form == "series":
            made, again = self.once(made)
            penalty = penalty + again
        return made, penalty


@pytest.mark.parametrize(
    ("form", "is_told"),
    [
        ("plain", True),
        ("turned", True),
        ("distributions", True),
        ("density", False),
        ("series", False),
    ],
)
def test_what_they_tell_beside_a_learned_prior(tmp_path: Path, form: str, is_told: bool) -> None:
    torch.manual_seed(2)
    model = BesideLearned(form)
    nats: list[float] = []

    def loss_of(module: nn.Module, step: int) -> torch.Tensor:
        x, _ = data(step)
        made, penalty = module(x)
        nats.append(model.nats)
        return (made - x).square().mean() + 0.01 * penalty

    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.Adam(model.parameters(), lr=0.01), 12, loss_of)
    name = "loop/latent_information/both"
    assert (name in td.Run(tmp_path / "run").names()) == is_told
    if is_told:
        steps, values = fact(tmp_path / "run", name)
        assert values == pytest.approx([nats[step] for step in steps], rel=1e-4)
    # Beside that of the prior, where the loss shows it by itself.
    has_deviation = "loop/latent_deviation/both" in td.Run(tmp_path / "run").names()
    assert has_deviation == (form == "distributions")
    is_learned = "loop/latent_prior_is_learned/both" in td.Run(tmp_path / "run").names()
    assert is_learned == is_told


class LayerOfHalves(nn.Module):
    """One layer gives mean and log variance of 4 variables for each of 6 places."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.is_convolution = kind == "convolution"
        self.both = nn.Conv1d(5, 8, 1) if self.is_convolution else nn.Linear(5, 8)
        with torch.no_grad():  # collapsed: a mean of 0 and a variance of 1, for any input
            self.both.weight.zero_()
            self.both.bias.zero_()
            self.both.weight[4:] = 0.3  # of the log variance, which says nothing of the sample
        self.decode = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        along = 1 if self.is_convolution else -1
        mean, log_var = self.both(x).chunk(2, along)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        z = z.transpose(1, 2) if self.is_convolution else z
        return self.decode(z), mean, log_var


@pytest.mark.parametrize("kind", ["linear", "convolution"])
def test_halves_of_a_layer_are_cut_along_its_own_dimension(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(2)
    model = LayerOfHalves(kind)

    def loss_of(module: nn.Module, step: int) -> torch.Tensor:
        x = torch.randn(32, 6, 5)
        made, mean, log_var = module(x.transpose(1, 2) if kind == "convolution" else x)
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()
        return (made - x).square().mean() + 0.01 * kl

    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.SGD(model.parameters(), lr=1e-6), 4, loss_of)
    _, values = fact(tmp_path / "run", "loop/latent_information/both")
    assert all(value < 0.01 for value in values)


class Series(nn.Module):
    def __init__(self, gain: float) -> None:
        super().__init__()
        self.rnn = nn.RNN(1, 16, batch_first=True)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain)
        self.head = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x[:, :, None])[0][:, -1])


class Gated(nn.Module):
    """An LSTM behind another layer, whose forget gates begin open or shut."""

    def __init__(self, forget: float, both_ways: bool = False) -> None:
        super().__init__()
        self.inp = nn.Linear(1, 8)
        self.rnn = nn.LSTM(8, 16, batch_first=True, bidirectional=both_ways)
        nn.init.constant_(self.rnn.bias_ih_l0[16:32].detach(), forget)
        self.head = nn.Linear(32 if both_ways else 16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.inp(x[:, :, None]))[0][:, -1])


@pytest.mark.parametrize(
    ("kind", "start", "low", "high"),
    [
        (Series, 0.3, 0.0, 1e-3),
        (Series, 1.0, 1e-2, 1e2),
        (Gated, -6.0, 0.0, 1e-3),
        (Gated, 6.0, 1e-2, 1e2),
    ],
)
def test_a_gradient_on_its_way_through_time(
    tmp_path: Path, kind: Callable[[float], nn.Module], start: float, low: float, high: float
) -> None:
    torch.manual_seed(3)
    model = kind(start)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.SGD(model.parameters(), lr=0.01), 12)
    _, uses = fact(tmp_path / "run", "loop/uses_in_time/rnn")
    _, ratios = fact(tmp_path / "run", "loop/gradient_through_time/rnn")
    assert uses == [12.0] * len(uses)
    assert 1 <= len(ratios) <= 3
    assert all(low <= ratio < high for ratio in ratios)


def test_of_an_lstm_that_goes_both_ways_nothing_is_told(tmp_path: Path) -> None:
    model = Gated(-6.0, both_ways=True)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.SGD(model.parameters(), lr=0.01), 6)
    assert fact(tmp_path / "run", "loop/gradient_through_time/rnn") == ([], [])


@pytest.mark.parametrize("kind", [Series, Gated])
def test_hooks_on_a_graph_change_nothing(
    tmp_path: Path, kind: Callable[[float], nn.Module]
) -> None:
    def run(watched: bool) -> str:
        torch.manual_seed(4)
        model = kind(0.9)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        if not watched:
            train(model, optimizer, 12)
        else:
            with td.watch(model, run_dir=tmp_path / "run", supervise=False):
                train(model, optimizer, 12)
        return fingerprint(model, [])

    assert run(True) == run(False)


@pytest.mark.parametrize(("momentum", "is_far"), [(0.1, False), (0.001, True)])
def test_running_statistics_and_those_of_the_batch(
    tmp_path: Path, momentum: float, is_far: bool
) -> None:
    torch.manual_seed(5)
    model = mlp(nn.BatchNorm1d(32, momentum=momentum), nn.ReLU())
    with torch.no_grad():
        model[0].bias += 3
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        train(model, optimizer, 60, lambda m, s: F.cross_entropy(m(data(s, 64)[0]), data(s, 64)[1]))
    steps, gaps = fact(tmp_path / "run", "loop/norm_gap/1")
    _, left = fact(tmp_path / "run", "loop/norm_start_left/1")
    assert steps[-1] >= 50
    assert (gaps[-1] > 1) == is_far
    assert left[-1] == pytest.approx((1 - momentum) ** (steps[-1] + 1), rel=1e-4)


def test_running_statistics_that_are_the_mean_of_all_batches(tmp_path: Path) -> None:
    def grow(step: int) -> None:
        with torch.no_grad():
            model[0].bias += 0.1  # what the first batches were with other weights counts for ever

    torch.manual_seed(5)
    model = mlp(nn.BatchNorm1d(32, momentum=None), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for step in range(60):
            x, y = data(step, 64)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            grow(step)
    steps, gaps = fact(tmp_path / "run", "loop/norm_gap/1")
    assert gaps[-1] > max(1.2 * gaps[0], 0.3)
    _, shares = fact(tmp_path / "run", "loop/norm_momentum/1")
    assert shares == pytest.approx([1 / (step + 1) for step in steps])
    assert set(fact(tmp_path / "run", "loop/norm_of_all_batches/1")[1]) == {1}
    assert set(fact(tmp_path / "run", "loop/norm_start_left/1")[1]) == {0}


@pytest.mark.parametrize(("samples", "is_noisy"), [(2, True), (64, False)])
def test_noise_of_batches_whose_gradients_are_summed(
    tmp_path: Path, samples: int, is_noisy: bool
) -> None:
    torch.manual_seed(5)
    model = mlp(nn.BatchNorm1d(32), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for step in range(40):
            for part in range(8):
                x, y = data(8 * step + part, samples)
                F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    _, noise = fact(tmp_path / "run", "loop/norm_noise/1")
    assert (noise[-1] > 0.25) == is_noisy


def test_the_strongest_dropout_is_told(tmp_path: Path) -> None:
    model = mlp(nn.Dropout(0.2), nn.ReLU(), nn.Dropout(0.9))
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.SGD(model.parameters(), lr=0.01), 5)
    steps, values = fact(tmp_path / "run", "loop/dropout/3")
    assert len(steps) >= 4
    assert set(values) == {0.9}


def test_what_a_model_returns_differs_from_sample_to_sample(tmp_path: Path) -> None:
    torch.manual_seed(6)
    model = mlp()
    x, y = data(0)
    with torch.no_grad():
        out = model(x)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        train(model, optimizer, 4, lambda m, s: F.cross_entropy(m(x), y))
    _, deviations = fact(tmp_path / "run", "loop/output_deviation/model")
    _, sizes = fact(tmp_path / "run", "loop/output_size/model")
    expected = float((out - out.mean(0)).square().mean().sqrt())
    assert deviations[-1] == pytest.approx(expected, rel=1e-5)
    assert sizes[-1] == pytest.approx(float(out.square().mean().sqrt()), rel=1e-5)
    _, directions = fact(tmp_path / "run", "loop/output_directions/model")
    e = torch.linalg.svdvals((out - out.mean(0)).double()).square()
    assert directions[-1] == pytest.approx(float(e.sum().square() / e.square().sum()), rel=1e-4)


class ByMethod(nn.Module):
    """Its method of training calls its parts, and never the model."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([nn.Linear(12, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 8))])
        self.projector = nn.Linear(8, 4)

    def compare(self, x: torch.Tensor, calls: int) -> torch.Tensor:
        for stage in self.stages:
            x = stage(x)
        return sum(self.projector(x).square().mean() for _ in range(calls))


@pytest.mark.parametrize(("calls", "places"), [(1, ["projector"]), (2, []), (0, ["stages.1"])])
def test_what_the_part_returns_that_a_method_calls_last(
    tmp_path: Path, calls: int, places: list[str]
) -> None:
    model = ByMethod()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for step in range(4):
            x, _ = data(step)
            loss = model.compare(x, calls) if calls else model.stages[1](model.stages[0](x)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    names = td.Run(tmp_path / "run").names()
    told = [name for name in names if name.startswith("loop/output_deviation/")]
    assert told == [f"loop/output_deviation/{place}" for place in places]


def test_directions_are_as_many_as_rows_spread_in() -> None:
    torch.manual_seed(0)
    even = torch.eye(8).repeat(8, 1) - 0.125
    assert float(directions_of(1e-20 * even)) == pytest.approx(7)
    copies = torch.randn(64, 1) * torch.ones(40) + 3
    assert float(directions_of(copies)) == pytest.approx(1)
    assert float(directions_of(torch.full((16, 4), 0.3))) == 0
    assert not torch.isfinite(directions_of(torch.full((16, 4), torch.nan)))


def test_rows_of_positions_are_in_order() -> None:
    def share(rows: torch.Tensor) -> float | None:
        found = in_order(rows)
        return None if found is None else float(found)

    assert share(torch.arange(12)) == 1
    assert share(torch.arange(12).expand(8, 12)) == 1
    assert share(torch.arange(12).flip(0)[None]) == 1
    assert share(torch.tensor([[0, 1, 2, 2], [3, 0, 1, 2]])) == 0.5
    assert share(torch.tensor([5, 2, 9, 1])) == 0
    assert share(torch.tensor([[5], [2], [9]])) == 0
    assert share(torch.tensor(3)) is None
    assert share(torch.tensor([3, 4])) is None
    assert share(torch.rand(4, 4)) is None


def test_positions_that_begin_again_or_after_padding_count_too() -> None:
    positions = torch.arange(2, 42)
    padded = torch.stack([torch.cat([torch.ones(k), positions[: 40 - k]]) for k in (3, 9, 0, 25)])
    packed = torch.cat([torch.arange(length) for length in (7, 12, 4, 9)]).expand(3, -1)
    ended = torch.stack([torch.where(positions < k, positions, 0) for k in (20, 30, 42)])
    for rows in (padded.long(), packed, ended, positions.flip(0).expand(3, -1)):
        assert float(in_order(rows)) == 1
    torch.manual_seed(0)
    for rows in (torch.randint(0, 2, (16, 24)), torch.randint(0, 12, (16, 24))):
        assert float(in_order(rows)) < 0.1


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(30, 8), nn.Embedding(16, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((self.words(x) + self.positions(torch.arange(x.shape[1]))).mean(1))


def test_how_embeddings_are_looked_up_is_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Words()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            loss = F.cross_entropy(model(torch.randint(0, 30, (8, 10))), torch.randint(0, 2, (8,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert fact(tmp_path / "run", "loop/rows_in_order/positions")[1][-1] == 1
    assert fact(tmp_path / "run", "loop/rows_in_order/words")[1][-1] == 0
    assert td.Run(tmp_path / "run").names("^loop/rows_one_each") == ["loop/rows_one_each/positions"]


def test_the_layer_with_fewest_directions_is_named(tmp_path: Path) -> None:
    torch.manual_seed(6)
    layers = [nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 24), nn.Tanh(), nn.Linear(24, 24)]
    model = nn.Sequential(*layers, nn.Linear(24, 20))
    with torch.no_grad():
        model[2].weight[:] = model[2].weight[0].clone()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        x, y = data(0, 64)
        train(model, optimizer, 4, lambda m, s: F.cross_entropy(m(x), y))
    _, given = fact(tmp_path / "run", "loop/input_directions")
    _, fewest = fact(tmp_path / "run", "loop/given_directions/4")
    _, units = fact(tmp_path / "run", "loop/given_units/4")
    assert given[-1] > 8
    assert fewest[-1] == pytest.approx(1, abs=0.01)
    assert units[-1] == 24


class Distance(nn.Module):
    """One value a sample: how far apart two inputs lie."""

    def __init__(self, calls: int = 2, width: int = 5) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(12, 8), nn.Linear(8, width)
        self.calls = calls

    def embed(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.relu(self.hidden(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        branches = [self.embed(x + number) for number in range(self.calls)]
        return (branches[0] - branches[-1]).square().sum(1)


@pytest.mark.parametrize(
    ("net", "is_told"),
    [
        (Distance(), True),
        (Distance(calls=4), True),
        (Distance(calls=1), False),  # no branches
        (Distance(calls=5), False),  # steps through time
        (Distance(width=1), False),  # a critic that is asked twice
    ],
)
def test_a_layer_that_is_called_for_each_of_a_pair(
    tmp_path: Path, net: Distance, is_told: bool
) -> None:
    x, _ = data(0)
    with torch.no_grad():
        out = net.embed(x + net.calls - 1)
    with td.watch(net, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        train(net, optimizer, 4, lambda m, _: m(x).mean())
    _, deviations = fact(tmp_path / "run", "loop/branch_deviation/last")
    _, sizes = fact(tmp_path / "run", "loop/branch_size/last")
    assert bool(deviations) == is_told
    if is_told:
        expected = float((out - out.mean(0)).square().mean().sqrt())
        assert deviations[-1] == pytest.approx(expected, rel=1e-5)
        assert sizes[-1] == pytest.approx(float(out.square().mean().sqrt()), rel=1e-5)
    assert not any(
        "branch" in name and "last" not in name for name in td.Run(tmp_path / "run").names()
    )


def test_what_a_model_returns_is_enough(tmp_path: Path) -> None:
    model = mlp()

    def loss_of(module: nn.Module, step: int) -> torch.Tensor:
        x, _ = data(step)
        return (module(x) - module(x + 1)).square().mean()

    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.SGD(model.parameters(), lr=0.0), 4, loss_of)
    names = td.Run(tmp_path / "run").names()
    assert "loop/output_deviation/model" in names
    assert not any("branch" in name for name in names)


def test_steps_that_the_loop_leaves_out(tmp_path: Path) -> None:
    torch.manual_seed(7)
    model = mlp()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(80):
            x, y = data(step)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            (loss * (1e39 if step >= 5 else 1.0)).backward()
            if all(p.grad.isfinite().all() for p in model.parameters()):
                optimizer.step()
    steps, values = fact(tmp_path / "run", "loop/steps_left_out")
    assert steps[0] == 5
    assert len(steps) >= 2
    assert all(value >= 10 for value in values)


def test_many_micro_batches_are_no_steps_that_are_left_out(tmp_path: Path) -> None:
    model = mlp()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            for micro in range(60):
                x, y = data(100 * step + micro)
                (F.cross_entropy(model(x), y) / 60).backward()
            optimizer.step()
    assert fact(tmp_path / "run", "loop/steps_left_out") == ([], [])
    assert len(td.Run(tmp_path / "run").steps()) == 3


def test_a_scaler_that_is_off_scales_nothing(tmp_path: Path) -> None:
    for name, enabled in (("on", True), ("off", False)):
        torch.manual_seed(8)
        model = mlp()
        scaler = torch.amp.GradScaler("cpu", enabled=enabled)
        with td.watch(model, run_dir=tmp_path / name, supervise=False):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(5):
                x, y = data(step)
                optimizer.zero_grad()
                scaler.scale(F.cross_entropy(model(x), y)).backward()
                scaler.step(optimizer)
                scaler.update()
        _, values = fact(tmp_path / name, "loop/scaled_passes")
        assert len(values) >= 3
        assert set(values) == {float(enabled)}


def test_targets_of_a_loss_about_differences_differ_from_sample_to_sample(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = nn.Linear(12, 12)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):

        def loss_of(model: nn.Module, step: int) -> torch.Tensor:
            x, _ = data(step)
            return F.mse_loss(model(x), 3 * x + 7)

        train(model, torch.optim.SGD(model.parameters(), lr=0.01), 4, loss_of)
    steps, deviations = fact(tmp_path / "run", "loop/target_deviation")
    expected = [
        float((3 * (x := data(s)[0]) - 3 * x.mean(0)).square().mean().sqrt()) for s in steps
    ]
    assert steps == [0, 1, 2, 3]
    assert deviations == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("calls", "told"), [(1, []), (2, [2.0]), (3, [3.0])])
def test_a_loss_that_is_made_of_several_calls_of_one_function(
    tmp_path: Path, calls: int, told: list[float]
) -> None:
    torch.manual_seed(1)
    model = mlp()

    def loss_of(model: nn.Module, step: int) -> torch.Tensor:
        x, y = data(step)
        out = model(x)
        return sum(F.cross_entropy(out, y.roll(k)) / calls for k in range(calls))

    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.SGD(model.parameters(), lr=0.01), 4, loss_of)
    _, values = fact(tmp_path / "run", "loop/calls_of_one_loss")
    assert sorted(set(values)) == told


def test_calls_for_one_backward_pass_each_are_no_several(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for step in range(4):
            optimizer.zero_grad()
            for part in range(2):
                x, y = data(2 * step + part)
                (F.cross_entropy(model(x), y) / 2).backward()
            optimizer.step()
    assert fact(tmp_path / "run", "loop/calls_of_one_loss") == ([], [])


class Once(torch.autograd.graph.saved_tensors_hooks):
    """Gives what was saved for backward back once, as something that offloads it may."""

    def __init__(self) -> None:
        kept: dict[int, torch.Tensor] = {}

        def pack(tensor: torch.Tensor) -> int:
            kept[len(kept)] = tensor
            return len(kept) - 1

        super().__init__(pack, kept.pop)


def test_what_somebody_packed_is_not_unpacked(tmp_path: Path) -> None:
    model = mlp()
    share = torch.tensor(0.3)

    def loss_of(module: nn.Module, step: int) -> torch.Tensor:
        x, y = data(step)
        with Once():
            out = module(x)
            return F.cross_entropy(out, y) + share * F.mse_loss(out, torch.zeros_like(out))

    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), 4, loss_of)
    assert td.Run(tmp_path / "run").steps().tolist() == [0, 1, 2, 3]


def _net_that_drops(share: float | None, forward: str) -> nn.Module:
    """Without a module for dropout."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(12, 8)
            if share is not None:
                self.dropout = share

        def of_its_share(self, x: torch.Tensor) -> torch.Tensor:
            return F.dropout(self.layer(x).relu(), self.dropout, training=self.training)

        def of_a_number(self, x: torch.Tensor) -> torch.Tensor:
            return F.dropout(self.layer(x).relu(), p=0.6, training=self.training)

        def of_none(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).relu() if self.training else self.layer(x)

    Net.forward = getattr(Net, forward)
    return Net()


@pytest.mark.parametrize(
    ("share", "forward", "acts"),
    [
        (0.5, "of_its_share", True),
        (0.0, "of_its_share", False),
        (None, "of_a_number", True),
        (0.5, "of_none", False),
    ],
)
def test_a_model_whose_forward_drops_by_itself_acts_by_its_mode(
    share: float | None, forward: str, acts: bool
) -> None:
    assert acts_by_mode(_net_that_drops(share, forward)) is acts


def test_a_model_in_evaluation_mode_that_drops_by_itself_is_told_of(tmp_path: Path) -> None:
    model = nn.Sequential(_net_that_drops(0.5, "of_its_share"), nn.Linear(8, 3)).eval()
    watcher = td.watch(model, run_dir=tmp_path / "run", supervise=False)
    train(model, torch.optim.SGD(model.parameters(), lr=0.01), 4)
    watcher.detach()
    run = td.Run(tmp_path / "run")
    told = [name for name in run.names() if name.startswith("loop/modules_in_eval")]
    assert [fact(tmp_path / "run", name)[1][0] for name in told] == [1]
