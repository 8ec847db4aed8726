"""What is recorded is what PyTorch itself computes at the same step."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td


def check(statistics, tensor: torch.Tensor) -> None:
    x = tensor.detach().double()
    assert statistics.count == x.numel()
    assert statistics.zero == int((x == 0).sum())
    assert statistics.min == pytest.approx(x.min().item(), rel=1e-6)
    assert statistics.max == pytest.approx(x.max().item(), rel=1e-6)
    assert statistics.mean == pytest.approx(x.mean().item(), rel=1e-5, abs=1e-8)
    # Of values that are the same but for their last bit, the deviation is rounding.
    rounding = max(1e-9, 1e-7 * abs(x.mean().item()))
    assert statistics.std == pytest.approx(x.std(unbiased=False).item(), rel=1e-5, abs=rounding)
    assert statistics.l1 == pytest.approx(x.abs().sum().item(), rel=1e-6)
    assert statistics.l2 == pytest.approx(x.norm().item(), rel=1e-5)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.relu = nn.ReLU(inplace=True)
        self.rnn = nn.LSTM(8, 4, batch_first=True)
        self.fc2 = nn.Linear(4, 3)
        self.seen: dict[str, torch.Tensor] = {}

    def forward(self, x, scale=None):
        a = self.fc1(x)
        self.seen["output/fc1"] = a.clone()
        b = self.relu(a)
        self.seen["activation/relu"] = b.clone()
        c, _ = self.rnn(b[:, None])
        self.seen["output/rnn.0"] = c.clone()
        d = torch.sigmoid(c[:, 0])
        self.seen["activation/model.sigmoid"] = d.clone()
        e = F.gelu(torch.tanh(d).tanh())
        self.seen["activation/model.tanh#2"] = torch.tanh(d).tanh().clone()
        self.seen["activation/model.gelu"] = e.clone()
        return self.fc2(e if scale is None else e * scale)


@pytest.fixture(params=["cpu path", "device path"])
def recorded(request, run_dir, monkeypatch):
    """One step of a small model: the run, and the tensors as PyTorch saw them."""
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    torch.manual_seed(5)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.8, 0.9))
    x, scale = torch.randn(16, 6), torch.randn(16, 4)
    labels = torch.randint(0, 3, (16,))
    expected: dict[str, torch.Tensor] = {"input/0": x, "input/1": scale}
    with td.watch(model, optimizer, run_dir=run_dir, every=1, supervise=False):
        logits = model(x, scale=scale)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        for name, parameter in model.named_parameters():
            role = "bias" if "bias" in name else "weight"
            expected[f"{role}/{name}"] = parameter.detach().clone()
            expected[f"gradient/{name}"] = parameter.grad.clone()
        optimizer.step()
    expected |= model.seen
    return td.Run(run_dir), expected, loss.item(), logits, labels


def test_statistics_are_those_of_torch(recorded):
    run, expected, _, _, _ = recorded
    step = run.step(0)
    assert set(expected) <= set(step.tensors)
    for name, tensor in expected.items():
        check(step.tensors[name].statistics, tensor)


def test_losses_and_classes(recorded):
    run, _, loss, logits, labels = recorded
    step = run.step(0)
    assert step.scalars["loss"] == pytest.approx(loss, rel=1e-7)
    assert step.scalars["loss/cross_entropy"] == pytest.approx(loss, rel=1e-7)
    counts = step.classes["classes/cross_entropy"]
    predicted = logits.argmax(1)
    assert counts.labels == torch.bincount(labels, minlength=3).tolist()
    assert counts.predictions == torch.bincount(predicted, minlength=3).tolist()
    assert sum(counts.hits) == int((predicted == labels).sum())


def test_names_roles_and_layers(recorded):
    run, _, _, _, _ = recorded
    info = run["weight/fc1.weight"].info
    assert (info["role"], info["module"], info["module_type"], info["layer"]) == (
        "weight",
        "fc1",
        "Linear",
        1,
    )
    assert info["shape"] == (8, 6)
    assert run["activation/relu"].info["activation"] == "relu"
    assert run["activation/model.sigmoid"].info["activation"] == "sigmoid"
    assert run["bias/rnn.bias_ih_l0"].role == "bias"
    assert "output/relu" not in run


def test_description_names_model_and_optimizer(recorded):
    run, _, _, _, _ = recorded
    facts = run.worker_meta()
    assert facts["framework"].startswith("torch ")
    assert facts["model_type"] == "Net"
    assert facts["parameters"] == sum(p.numel() for p in Net().parameters())
    settings = facts["optimizers"][0]["settings"]
    assert settings["lr"] == 0.01
    assert (settings["beta1"], settings["beta2"]) == (0.8, 0.9)


@pytest.mark.parametrize("path", ["cpu", "device"])
def test_values_that_are_not_finite_are_counted(path, run_dir, monkeypatch):
    if path == "device":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, every=1, supervise=False):
        model(torch.ones(2, 4)).sum().backward()
        model.weight.grad[0] = torch.tensor([math.nan, math.inf, -math.inf, 3.0])
        optimizer.step()
    found = td.Run(run_dir).step(0).tensors["gradient/weight"].statistics
    assert (found.nan, found.positive_infinite, found.negative_infinite) == (1, 1, 1)
    assert (found.min, found.max, found.mean, found.l2) == (3, 3, 3, 3)


def test_whole_tensors_come_back(run_dir):
    model = nn.Linear(4, 2).to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().float().numpy().copy()
    with td.watch(model, optimizer, run_dir=run_dir, raw="weights", every=2, supervise=False):
        for _ in range(3):
            model(torch.ones(2, 4, dtype=torch.bfloat16)).sum().backward()
            optimizer.step()
    tensor = td.Run(run_dir)["weight/weight"]
    assert tensor.raw_steps().tolist() == [0, 2]
    np.testing.assert_array_equal(tensor.value(0), before)
    with pytest.raises(td.TraindbgError, match="step 1"):
        tensor.value(1)


def test_leftover_gradient_is_seen_only_without_zero_grad(tmp_path):
    for clear in (True, False):
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with td.watch(model, optimizer, run_dir=tmp_path / str(clear), supervise=False):
            for _ in range(3):
                if clear:
                    optimizer.zero_grad()
                model(torch.ones(2, 4)).sum().backward()
                optimizer.step()
    name = "loop/gradient_before_backward"
    assert name not in td.Run(tmp_path / "True")
    tensor = td.Run(tmp_path / "False")[name]
    assert tensor.steps().tolist() == [1, 2]
    assert tensor.info["module"] == "bias"
    assert (tensor.values("l2") > 0).all()


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_cleared_between_the_passes_of_a_step_are_told(run_dir, to_none):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        for step in range(4):
            model(torch.ones(2, 4)).sum().backward()  # an attack's, say
            if step != 2:
                optimizer.zero_grad(set_to_none=to_none)
            model(torch.ones(2, 4)).square().mean().backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert run["loop/gradient_before_backward"].steps().tolist() == [1, 2, 3]
    assert run["loop/cleared_between_passes"].steps().tolist() == [0, 1, 3]


@pytest.mark.parametrize("is_held", [True, False])
def test_loss_under_a_gradient_scaler_is_the_unscaled_one(run_dir, is_held):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with td.watch(model, optimizer, run_dir=run_dir, every=1, supervise=False):
        loss = model(torch.ones(2, 4)).square().mean()
        value = loss.item()
        if not is_held:
            loss = scaler.scale(loss)
        (scaler.scale(loss) if is_held else loss).backward()
        gradient = model.weight.grad.clone() / 1024
        scaler.step(optimizer)
        scaler.update()
    step = td.Run(run_dir).step(0)
    assert step.scalars["loss"] == pytest.approx(value, rel=1e-6)
    check(step.tensors["gradient/weight"].statistics, gradient)


def test_evaluations_are_steps_of_their_own(run_dir):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        for _ in range(2):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                for _ in range(3):
                    expected = F.cross_entropy(model(x), y).item()
            td.log("accuracy", 0.25)
            model.train()
    run = td.Run(run_dir)
    assert run.steps("train").tolist() == [0, 1]
    series = run.scalars("loss/cross_entropy", "eval")
    assert series.steps.tolist() == [0, 1, 2, 3, 4, 5]
    assert series.values[-1] == pytest.approx(expected, rel=1e-6)
    assert run.scalars("metric/accuracy", "eval").steps.tolist() == [2, 5]
    assert "loss" in run
    assert len(run["loss"].steps("eval")) == 0


@pytest.mark.filterwarnings("error")
def test_a_metric_may_have_a_gradient(run_dir):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        loss = model(torch.randn(6, 4)).square().mean()
        td.log("total", loss)
        loss.backward()
        optimizer.step()
    assert td.Run(run_dir).scalars("metric/total").values == pytest.approx([loss.item()])


def test_two_models_with_two_optimizers(run_dir):
    generator, discriminator = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 1))
    first = torch.optim.Adam(discriminator.parameters())
    second = torch.optim.SGD(generator.parameters(), lr=0.1)
    with td.watch(discriminator, run_dir=run_dir, every=1, supervise=False), td.watch(generator):
        for _ in range(4):
            for optimizer, sign in ((first, 1), (second, -1)):
                optimizer.zero_grad()
                (sign * discriminator(generator(torch.randn(3, 4)))).mean().backward()
                optimizer.step()
    run = td.Run(run_dir)
    # The first optimizer drives; what the other one did after its last step is kept as well.
    assert run.steps().tolist() == [0, 1, 2, 3, 4]
    assert len(run["gradient/0.weight"].steps()) == 4
    assert len(run["gradient/Linear.weight"].steps()) >= 3
    # Rules judge a game of two optimizers more carefully: both have to be known.
    assert [facts["type"] for facts in run.worker_meta()["optimizers"]] == ["Adam", "SGD"]


def test_learning_rate_changes_are_events(run_dir):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        for step in range(3):
            if step == 2:
                optimizer.param_groups[0]["lr"] = 0.01
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    changes = [event["data"] for event in td.Run(run_dir).events if event["kind"] == "optimizer"]
    assert [(change["step"], change["settings"]["lr"]) for change in changes] == [(2, 0.01)]


def test_parts_that_are_called_without_the_model_are_seen(run_dir):
    model = nn.ModuleDict({"encoder": nn.Linear(4, 2), "decoder": nn.Linear(2, 4)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        for _ in range(3):
            model["decoder"](model["encoder"](torch.ones(3, 4))).sum().backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert run["output/encoder"].steps().tolist() == [1, 2]
    assert "output/decoder" in run


def test_parts_are_seen_although_evaluations_call_the_model(run_dir):
    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(4, 2)
            self.decoder = nn.Linear(2, 4)

        def forward(self, x):
            return self.decoder(self.encoder(x))

    model = Coder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        for _ in range(3):
            model.eval()
            with torch.no_grad():
                model(torch.zeros(5, 4))
            model.train()
            out = model.encoder(torch.ones(3, 4))
            model.decoder(out).sum().backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert run["output/encoder"].steps().tolist() == [1, 2]
    assert run["output/decoder"].steps().tolist() == [1, 2]
    check(run.step(2).tensors["output/encoder"].statistics, out)


def test_own_collections(run_dir):
    model = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        model, run_dir=run_dir, rules=[], collections={"head": r"^weight/1\."}, supervise=False
    ):
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    run = td.Run(run_dir)
    assert run.names(collection="head") == ["weight/1.weight"]
    assert list(run.step(0).tensors) == ["weight/1.weight"]
