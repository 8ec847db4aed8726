"""Several forward and backward passes in one step, told apart."""

from __future__ import annotations

import pytest
import torch
import trainings
from test_torch_values import check
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import traindbg as td
from traindbg.errors import InvalidArgument
from traindbg.hooks.torch.base.micro_batches import MOST, MicroBatches

ALL = ("inputs", "outputs", "activations", "losses", "predictions", "labels")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return torch.tanh(self.fc(x))


def watched(run_dir, **wishes):
    torch.manual_seed(2)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wishes = {"collect": ALL, "micro_batches": "all"} | wishes
    return model, optimizer, td.watch(model, optimizer, run_dir=run_dir, supervise=False, **wishes)


def test_every_one_is_captured_under_its_name(run_dir):
    model, optimizer, watcher = watched(run_dir)
    seen = []
    with watcher:
        for _ in range(2):
            for micro in range(1, 4):
                x, y = torch.randn(5, 4), torch.full((5, 3), float(micro))
                out = model(x)
                loss = F.mse_loss(out, y) / 3
                loss.backward()
                seen.append((x, y, out, loss.item()))
            optimizer.step()
            optimizer.zero_grad()
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1]
    for index, (x, y, out, loss) in enumerate(seen):
        step, micro = run.step(index // 3), index % 3 + 1
        mark = "" if micro == 1 else f"@{micro}"
        check(step.tensors[f"input/0{mark}"].statistics, x)
        check(step.tensors[f"activation/model.tanh{mark}"].statistics, out)
        check(step.tensors[f"prediction/mse_loss{mark}"].statistics, out)
        check(step.tensors[f"label/mse_loss{mark}"].statistics, y)
        assert f"output/fc{mark}" in step.tensors
        assert step.scalars[f"loss{mark}"] == pytest.approx(loss, rel=1e-6)
        assert step.scalars[f"loss/mse_loss{mark}"] == pytest.approx(loss * 3, rel=1e-6)
    assert not [name for name in run.names() if "@4" in name or "@1" in name]
    assert run["output/fc@2"].info["module"] == "fc"


@pytest.mark.parametrize("collect", ["losses", "gradients"])
def test_how_many_there_were_is_recorded_whatever_is_collected(run_dir, collect):
    model, optimizer, watcher = watched(run_dir, collect=collect, every=4, rules=[])
    with watcher:
        for several in (1, 3, 2):
            for _ in range(several):
                F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3)).backward()
            optimizer.step()
    steps, numbers = td.Run(run_dir).scalars("loop/micro_batches")
    assert (steps.tolist(), numbers.tolist()) == ([1, 2], [3.0, 2.0])


@pytest.mark.parametrize("several", [1, 2])
def test_losses_are_counted_anew_in_each_optimizers_turn(run_dir, several):
    torch.manual_seed(2)
    first, second = Net(), Net()
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (first, second)]
    wishes = {"collect": ALL, "micro_batches": "all", "supervise": False, "rules": []}
    losses = []
    with td.watch(first, optimizers[0], run_dir=run_dir, **wishes), td.watch(second):
        for _ in range(3):
            for model, optimizer in zip((first, second), optimizers, strict=True):
                for _ in range(several):
                    loss = F.mse_loss(model(torch.randn(5, 4)), torch.ones(5, 3))
                    loss.backward()
                    losses.append(loss.item())
                optimizer.step()
    run = td.Run(run_dir)
    for micro in range(several):
        mark = "" if micro == 0 else f"@{micro + 1}"
        for name in (f"loss{mark}", f"loss/mse_loss{mark}"):
            assert run.scalars(name)[1] == pytest.approx(losses[micro :: 2 * several])
            others = run.scalars(f"{name}@Net.fc")[1]
            assert others == pytest.approx(losses[several + micro :: 2 * several])
    assert f"prediction/mse_loss@{several + 1}" not in run
    if several > 1:
        assert run.scalars("loop/micro_batches")[1][:3].tolist() == [2.0] * 3


def test_by_default_the_first_is_kept(run_dir):
    model, optimizer, watcher = watched(run_dir, micro_batches=None)
    with watcher:
        outs = []
        for _ in range(3):
            outs.append(model(torch.randn(5, 4)))
            F.mse_loss(outs[-1], torch.zeros(5, 3)).backward()
        optimizer.step()
    run = td.Run(run_dir)
    assert not [name for name in run.names() if "@" in name]
    check(run.step(0).tensors["activation/model.tanh"].statistics, outs[0])


def test_an_evaluation_in_between_is_none(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        for _ in range(2):
            F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3)).backward()
            model.eval()
            with torch.no_grad():
                for _ in range(3):
                    F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3))
            model.train()
        optimizer.step()
    run = td.Run(run_dir)
    assert "loss/mse_loss@2" in run.step(0).scalars
    assert not [name for name in run.names() if "@3" in name]
    assert run.scalars("loss/mse_loss", "eval")[0].tolist() == list(range(6))


def test_several_backward_passes_of_one_forward_pass_are_one(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        out = model(torch.randn(5, 4))
        F.mse_loss(out, torch.zeros(5, 3)).backward(retain_graph=True)
        F.l1_loss(out, torch.zeros(5, 3)).backward()
        optimizer.step()
    names = td.Run(run_dir).names()
    assert {"loss/mse_loss", "loss/l1_loss"} <= set(names)
    assert not [name for name in names if "@" in name]


def test_a_model_that_is_called_twice_before_backward_is_one(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        F.mse_loss(model(torch.randn(5, 4)), model(torch.randn(5, 4))).backward()
        optimizer.step()
    assert not [name for name in td.Run(run_dir).names() if "@" in name]


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_checkpoint_computes_again_is_none(run_dir, reentrant):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        for _ in range(2):
            x = torch.randn(5, 4, requires_grad=True)
            checkpoint(model, x, use_reentrant=reentrant).square().mean().backward()
        optimizer.step()
    assert not [name for name in td.Run(run_dir).names() if "@3" in name or "@4" in name]


def test_there_is_a_limit_and_it_is_said(run_dir):
    model, optimizer, watcher = watched(run_dir, collect="losses")
    with watcher:
        for _ in range(MOST + 2):
            F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3)).backward()
        optimizer.step()
    run = td.Run(run_dir)
    assert f"loss@{MOST}" in run
    assert f"loss@{MOST + 1}" not in run
    events = [event for event in run.events if event["kind"] == "not_captured"]
    assert "micro-batches" in str(events)


def test_compiled_code_shows_them_by_the_losses(run_dir):
    torch.manual_seed(2)
    model = Net()
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(compiled, optimizer, run_dir=run_dir, micro_batches="all", supervise=False):
        for _ in range(2):
            for _ in range(3):
                F.mse_loss(compiled(torch.randn(5, 4)), torch.zeros(5, 3)).backward()
            optimizer.step()
    run = td.Run(run_dir)
    for number in range(2):
        scalars = run.step(number).scalars
        assert {"loss", "loss@2", "loss@3", "loss/mse_loss@3"} <= set(scalars)
        assert "loss@4" not in scalars


@pytest.mark.parametrize(
    ("events", "number"),
    [
        ("FLB FLB FLB", 3),
        ("FB FB", 2),
        ("FFLB FFLB", 2),
        ("FLB LB MB", 1),  # a forward pass is what counts where they are seen
        ("LB LB LB", 3),
        ("LB MB", 1),  # two losses of what may be one pass
        ("LMB LMB", 2),
        ("B B B", 3),
        ("LB B", 2),
    ],
)
def test_how_they_are_recognised(events, number):
    batches = MicroBatches()
    batches.are_told_apart = True
    for event in events.replace(" ", ""):
        if event == "F":
            batches.forward_begins()
        elif event == "B":
            batches.backward_begins()
        else:
            batches.loss_computed(event)
    assert batches.number == number
    batches.step_ended()
    assert (batches.number, batches.mark) == (1, "")


def test_parts_that_are_called_without_the_model_show_them(run_dir):
    model = nn.ModuleDict({"encoder": nn.Linear(1, 1), "decoder": nn.Linear(1, 1)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        model, optimizer, run_dir=run_dir, collect=ALL, micro_batches="all", supervise=False
    ):
        for _ in range(2):
            outs = []
            for micro in range(1, 4):
                out = model["encoder"](torch.full((5, 1), float(micro)))
                outs.append((out, model["decoder"](out)))
                F.mse_loss(outs[-1][1], torch.zeros(5, 1)).backward()
            optimizer.step()
    run = td.Run(run_dir)
    for index, mark in enumerate(("", "@2", "@3")):
        for out, name in zip(outs[index], ("encoder", "decoder"), strict=True):
            check(run.step(1).tensors[f"output/{name}{mark}"].statistics, out)
        check(run.step(1).tensors[f"prediction/mse_loss{mark}"].statistics, outs[index][1])
    assert not [name for name in run.names() if "@4" in name]


def test_parts_beyond_the_limit_are_not_looked_at(run_dir):
    model = nn.ModuleDict({"encoder": nn.Linear(1, 1)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        model, optimizer, run_dir=run_dir, collect="outputs", micro_batches="all", supervise=False
    ):
        for _ in range(2):
            for _ in range(MOST + 2):
                model["encoder"](torch.ones(5, 1)).sum().backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert f"output/encoder@{MOST}" in run
    assert f"output/encoder@{MOST + 1}" not in run


@pytest.mark.parametrize("attempts", [1, 2])
def test_attempts_that_a_scaler_skips_are_none(run_dir, attempts):
    model, optimizer, watcher = watched(run_dir, collect=("losses", "loop"))
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    with watcher:
        for number in range(3):
            skipped = attempts if number != 1 else 0
            for factor in [float("inf")] * skipped + [1.0]:
                for _ in range(2):
                    loss = F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3)) * factor
                    scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1, 2]
    assert run.scalars("loop/micro_batches").values.tolist() == [2.0, 2.0, 2.0]
    assert not [name for name in run.names() if "@3" in name]


def test_an_unknown_word_is_refused(run_dir):
    with pytest.raises(InvalidArgument, match="micro_batches"):
        watched(run_dir, micro_batches="each")


@pytest.mark.parametrize("kind", trainings.KINDS)
def test_no_bit_changes(kind, run_dir):
    plain = trainings.train(kind)
    seen = trainings.train(
        kind,
        lambda m, o: td.watch(
            m, o, run_dir=run_dir, collect=ALL, micro_batches="all", supervise=False
        ),
    )
    assert seen == plain


def test_nothing_stays_attached(run_dir):
    model, _, watcher = watched(run_dir)
    hooks = torch.nn.modules.module._global_forward_pre_hooks
    assert hooks
    assert not model._forward_pre_hooks
    watcher.detach()
    assert not hooks


def test_the_inner_steps_of_maml_are_none(run_dir):
    """Their gradients go on into the loss of the weights that they lead to, the only one."""
    model, optimizer, watcher = watched(run_dir)
    weight, bias = model.fc.weight, model.fc.bias
    with watcher:
        for _ in range(2):
            x, y = torch.randn(5, 4), torch.randn(5, 3)
            w, b = weight, bias
            for _ in range(2):
                inner = F.mse_loss(F.linear(x, w, b), y)
                of_w, of_b = torch.autograd.grad(inner, (w, b), create_graph=True)
                w, b = w - 0.1 * of_w, b - 0.1 * of_b
            outer = F.smooth_l1_loss(F.linear(x, w, b), y)
            optimizer.zero_grad()
            outer.backward()
            optimizer.step()
    run = td.Run(run_dir)
    for step in run.steps().tolist():
        names = [*run.step(step).tensors, *run.step(step).scalars]
        assert not [name for name in names if "@" in name]
        assert "loss" in run.step(step).scalars
