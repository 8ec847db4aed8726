"""traindbg leaves nothing behind, breaks nothing, and its own failures stay its own."""

from __future__ import annotations

import copy
import io
import os
import pickle
import sys
import threading

import pytest
import torch
import trainings
from torch import nn
from torch.nn import functional as F
from torch.nn.modules import module as torch_module

import traindbg as td
from traindbg.errors import InvalidArgument
from traindbg.hooks.torch.base import guard as guards
from traindbg.hooks.torch.base.tensors import Tensors
from traindbg.hooks.torch.evaluations.phases import Evaluations
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.recording.backward import BackwardObserver
from traindbg.hooks.torch.recording.forward_sink import ForwardSink
from traindbg.hooks.torch.recording.loss_observer import LossObserver
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.drivers import Drivers
from traindbg.hooks.torch.updates.optimizer import OptimizerObserver

# `torch.optim` hides this module behind nothing at all: it deletes the name.
torch_optimizer = sys.modules["torch.optim.optimizer"]


def traces_of_us(model: nn.Module) -> dict[str, object]:
    """All that traindbg could leave in PyTorch, the model or the process."""
    return {
        "losses": [getattr(F, name, None) for name in patches.LOSSES],
        "backward": torch.autograd.backward,
        "script": torch.jit.script,
        "compile": torch.compile,
        "scale": torch.amp.GradScaler.scale,
        "global hooks": (
            len(torch_module._global_forward_hooks),
            len(torch_module._global_forward_pre_hooks),
            len(torch_module._global_forward_hooks_always_called),
            len(torch_module._global_forward_hooks_with_kwargs),
        ),
        "registration hooks": (
            len(torch_module._global_module_registration_hooks),
            len(torch_module._global_parameter_registration_hooks),
        ),
        "asked for hooks": torch_module._has_any_global_hook,
        "optimizer hooks": (
            len(torch_optimizer._global_optimizer_pre_hooks),
            len(torch_optimizer._global_optimizer_post_hooks),
        ),
        "module hooks": [
            (len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()
        ],
        "function modes": torch._C._len_torch_function_stack(),
    }


def step(model, optimizer, x=None):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4) if x is None else x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.fixture
def small():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def test_a_thousand_cycles_leave_nothing(small, tmp_path):
    model, optimizer = small
    with td.watch(model, run_dir=tmp_path / "warm", supervise=False):
        step(model, optimizer)
    step(model, optimizer)
    before = traces_of_us(model)
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    native_threads = len(os.listdir("/proc/self/task"))
    for cycle in range(1000):
        watcher = td.watch(model, run_dir=tmp_path / f"run{cycle % 50}", supervise=False)
        if cycle % 100 == 0:
            step(model, optimizer)
        watcher.detach()
    assert traces_of_us(model) == before
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(os.listdir("/proc/self/task")) == native_threads
    assert recordings.current is None
    assert patches.state.listener is None


def test_a_step_that_needs_nothing_has_nothing_attached(small, run_dir):
    model, optimizer = small
    untouched = traces_of_us(model)
    with td.watch(model, run_dir=run_dir, rules=[], collect="outputs", every=3, supervise=False):
        attached = []
        for _ in range(7):
            attached.append(traces_of_us(model)["global hooks"] != untouched["global hooks"])
            assert traces_of_us(model)["module hooks"] == untouched["module hooks"]
            step(model, optimizer)
    assert attached == [True, False, False, True, False, False, True]
    assert td.Run(run_dir)["output/0"].steps().tolist() == [0, 3, 6]


def test_a_second_call_watches_nothing_twice(small, run_dir):
    model, optimizer = small
    with td.watch(model, run_dir=run_dir, supervise=False) as watcher:
        assert td.watch(model) is watcher
        assert td.watch(torch.nn.DataParallel(model)) is watcher
        step(model, optimizer)
    assert not watcher.is_active
    watcher.detach()


def test_the_model_can_be_pickled_and_copied_while_watched(small, run_dir):
    model, optimizer = small
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        step(model, optimizer)
        torch.save(model, io.BytesIO())
        copied = pickle.loads(pickle.dumps(model))
        deep = copy.deepcopy(model)
        assert pickle.loads(pickle.dumps(F.cross_entropy)) is F.cross_entropy
        for other in (copied, deep):
            assert not other._forward_hooks
            other(torch.full((2, 4), 9.0))
        step(model, optimizer)
    assert td.Run(run_dir).step(1).tensors["input/0"].statistics.max == 1


def test_exceptions_of_the_user_pass_through_unchanged(small, run_dir):
    class Breaks(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    model, _ = small
    broken = nn.Sequential(model, Breaks())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(broken, run_dir=run_dir, every=1, supervise=False):
        for _ in range(2):
            with pytest.raises(KeyError, match="mine"):
                broken(torch.ones(2, 4))
            assert torch._C._len_torch_function_stack() == 0
        with pytest.raises(RuntimeError):
            torch.ones(2, requires_grad=True).backward()
        with pytest.raises(ValueError, match="batch_size"):
            F.cross_entropy(torch.ones(2, 3), torch.ones(4, dtype=torch.long))
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    assert len(td.Run(run_dir).steps()) == 1


def test_ctrl_c_in_a_forward_pass_leaves_no_mode_behind(small, run_dir):
    class Interrupted(nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    model, optimizer = small
    interrupted = nn.Sequential(model, Interrupted())
    with td.watch(interrupted, run_dir=run_dir, every=1, supervise=False):
        with pytest.raises(KeyboardInterrupt):
            interrupted(torch.ones(2, 4))
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        assert torch._C._len_torch_function_stack() == 0


INTERNALS = (
    (Tensors, "take"),
    (Tensors, "take_scalar"),
    (Tensors, "id_of"),
    (Drivers, "learn"),
    (OptimizerObserver, "take_parameters"),
    (LossObserver, "_take_classes"),
    (Evaluations, "mode"),
    (ForwardSink, "_forward_mode"),
    (BackwardObserver, "_take_leftover"),
    (Evaluations, "end"),
    (Drivers, "check_settings"),
)


@pytest.mark.parametrize(("part", "internal"), INTERNALS)
def test_a_failure_of_ours_changes_nothing(part, internal, run_dir, monkeypatch, capfd):
    plain = trainings.train("eval")
    monkeypatch.setenv("TRAINDBG_STRICT", "0")

    def broken(*args, **kwargs):
        raise RuntimeError("injected")

    monkeypatch.setattr(part, internal, broken)
    watched = trainings.train(
        "eval", lambda m, o: td.watch(m, o, run_dir=run_dir, every=1, supervise=False)
    )
    recordings.current.close()
    assert watched == plain
    assert sum(guards.failures.values()) > 0
    said = capfd.readouterr().err
    assert said.count("injected") == len([k for k, v in guards.failures.items() if v])
    assert max(guards.failures.values()) <= 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_place_is_said_in_one_line_and_training_goes_on(small, tmp_path, capfd):
    model, optimizer = small
    tmp_path.chmod(0o500)
    check_unrecordable(model, optimizer, tmp_path / "run", capfd)


def test_a_file_in_the_way_is_said_in_one_line_and_training_goes_on(small, tmp_path, capfd):
    model, optimizer = small
    (tmp_path / "file").write_text("not a directory")
    check_unrecordable(model, optimizer, tmp_path / "file" / "run", capfd)


def check_unrecordable(model, optimizer, path, capfd):
    untouched = traces_of_us(model)
    watcher = td.watch(model, optimizer, run_dir=path, supervise=False)
    assert not watcher.is_active
    step(model, optimizer)
    watcher.detach()
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert str(path.parent) in lines[0]
    assert traces_of_us(model) == untouched


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"collect": "weigths"}, "weigths"),
        ({"rules": ["dead_rleu"]}, "dead_rleu"),
        ({"every": 0}, "every=0"),
        ({"collections": {"mine": "("}}, r"\("),
    ],
)
def test_a_mistake_in_the_call_is_named(arguments, named, small, run_dir):
    model, _ = small
    with pytest.raises(td.TraindbgError, match=named):
        td.watch(model, run_dir=run_dir, supervise=False, **arguments)
    assert recordings.current is None


def test_a_second_run_directory_is_refused(small, tmp_path):
    model, _ = small
    with (
        td.watch(model, run_dir=tmp_path / "a", supervise=False),
        pytest.raises(InvalidArgument, match="detach"),
    ):
        td.watch(nn.Linear(1, 1), run_dir=tmp_path / "b")


def test_the_child_of_a_fork_records_nothing_says_so_once_and_works(small, run_dir, capfd):
    model, optimizer = small
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        step(model, optimizer)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                step(model, optimizer)
                step(model, optimizer)
                code = 0 if recordings.current is None else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        step(model, optimizer)
    run = td.Run(run_dir)
    assert run.workers == [0]
    assert run.steps().tolist() == [0, 1]
    assert not run.damage
    assert capfd.readouterr().err.count(f"process {child} is a fork of one that is watched") == 1


class _Scored(nn.Module):
    """Its own loss comes out of it, and it is empty as far as Python asks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def __len__(self) -> int:
        return 0

    def forward(self, x, y):
        return F.cross_entropy(torch.relu(self.layer(x)), y)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_model_may_be_traced_at_any_step(run_dir):
    model = _Scored()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        for _ in range(4):
            loss = torch.jit.trace(model, (x, y))(x, y)  # checks that twice it is the same graph
            assert loss.item() == model(x, y).item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def test_a_model_of_no_length_is_a_model(run_dir):
    model = _Scored()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wishes = {"collect": "gradients_before", "every": 1, "supervise": False}
    with td.watch(model, optimizer, run_dir=run_dir, **wishes):
        model(torch.randn(5, 4), torch.randint(0, 3, (5,))).backward()
        before = model.layer.weight.grad.clone()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
    kept = td.Run(run_dir).step(0).tensors["gradient_before/layer.weight"].statistics
    assert kept.l2 == pytest.approx(before.norm().item())


def test_a_model_that_is_gone_is_not_kept_alive(run_dir):
    import gc
    import weakref

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    step(model, optimizer)
    alive = weakref.ref(model)
    del model, optimizer
    gc.collect()
    assert alive() is None
    successor = nn.Linear(4, 1)
    with td.watch(successor):
        step(successor, torch.optim.SGD(successor.parameters(), lr=0.1))
    assert td.Run(run_dir).steps().tolist() == [0, 1]


def test_unreduced_values_are_skipped_and_counted(run_dir):
    model = nn.Embedding(10, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False) as watcher:
        F.mse_loss(
            model(torch.tensor([1, 2])), torch.zeros(2, 4), reduction="none"
        ).sum().backward()
        optimizer.step()
        assert watcher._recording.session.counts()["tensors_skipped"] == 1
    run = td.Run(run_dir)
    assert "weight/weight" in run.step(0).tensors
    assert "gradient/weight" in run.step(0).tensors
    assert not run.names("^loss/")


def test_a_stop_ends_the_training_once_and_cleanly(small, run_dir):
    model, optimizer = small
    untouched = traces_of_us(model)
    td.watch(model, run_dir=run_dir, supervise=False)
    step(model, optimizer)
    request_stop(run_dir)
    with pytest.raises(td.TrainingStopped) as stopped:
        step(model, optimizer)
    assert stopped.value.code == 90
    assert isinstance(stopped.value, SystemExit)
    step(model, optimizer)
    assert traces_of_us(model) == untouched
    run = td.Run(run_dir)
    assert run.is_complete
    assert run.steps().tolist() == [0, 1]


def request_stop(run_dir):
    """As the supervisor does: one word of the control page (docs/format/control.md)."""
    import mmap
    import struct

    with open(run_dir / "control", "r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        struct.pack_into("<I", page, 64, 1)
