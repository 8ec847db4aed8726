"""torch.compile beside watching: nothing is compiled again, and what is not captured is said."""

from __future__ import annotations

import functools

import pytest
import torch
import trainings
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch import watching
from traindbg.hooks.torch.recording import recording as recordings


class Net(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.act = nn.ReLU()
        self.drop = nn.Dropout(dropout)
        self.last = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.drop(self.act(self.first(x)))))


EVERYTHING = ("outputs", "activations", "inputs")
NAMES = {
    "input/0",
    "output/first",
    "activation/act",
    "output/drop",
    "activation/model.tanh",
    "output/last",
}


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return (
        torch.randn(4, 8, generator=generator),
        torch.randint(0, 3, (4,), generator=generator),
    )


class Training:
    """A small training, compiled in one of the ways that there are."""

    def __init__(self, how: str, backend, dropout: float = 0.0, **options) -> None:
        torch._dynamo.reset()
        torch.manual_seed(3)
        self.model = Net(dropout)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.watched: nn.Module = self.model
        compiled = functools.partial(torch.compile, backend=backend, **options)
        if how == "module":
            self.watched = compiled(self.model)
            self.loss_of = lambda x, y: F.cross_entropy(self.watched(x), y)
        elif how == "method":
            self.model.compile(backend=backend, **options)
            self.loss_of = lambda x, y: F.cross_entropy(self.model(x), y)
        else:
            self.loss_of = compiled(lambda x, y: F.cross_entropy(self.model(x), y))
        self.losses: list[float] = []

    def step(self, number: int) -> None:
        self.optimizer.zero_grad()
        loss = self.loss_of(*batch(number))
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def fingerprint(self) -> str:
        return trainings.fingerprint(self.model, self.losses)


def stance() -> object:
    return torch._dynamo.eval_frame._stance


HOW = ("module", "method", "function")


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("how", HOW)
def test_eager_steps_are_captured_and_nothing_is_compiled_again(how, fullgraph, run_dir, recwarn):
    counter = CompileCounterWithBackend("aot_eager")
    training = Training(how, counter, fullgraph=fullgraph)
    before = stance()
    with td.watch(
        training.watched,
        run_dir=run_dir,
        rules=[],
        collect=EVERYTHING,
        every=2,
        supervise=False,
    ):
        training.step(0)
        assert counter.frame_count == 0, "step 0 ran uncompiled"
        assert stance() is before, "at a step that needs nothing"
        training.step(1)
        frames = counter.frame_count
        assert frames == 1
        for number in range(2, 40):
            training.step(number)
    assert counter.frame_count == frames
    assert stance() is before
    run = td.Run(run_dir)
    assert set(run.names(r"^(in|out)put|^activation")) == NAMES
    for name in NAMES:
        assert run[name].steps().tolist() == list(range(0, 40, 2)), name
    assert "loss/cross_entropy" in run
    assert not [event for event in run.events if event["kind"] == "not_captured"]
    assert not [warning for warning in recwarn if "global hooks" in str(warning.message)]


@pytest.mark.parametrize("how", HOW)
def test_eager_steps_compute_nearly_the_same(how, run_dir):
    def train(watched: bool) -> Training:
        training = Training(how, "aot_eager")
        if watched:
            td.watch(
                training.watched, run_dir=run_dir, collect=EVERYTHING, every=3, supervise=False
            )
        for number in range(12):
            training.step(number)
        return training

    plain = train(False)
    torch.testing.assert_close(train(True).losses, plain.losses)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("rules", [None, ["dead_relu"]])
def test_what_only_rules_need_leaves_a_compiled_training_alone(how, rules, run_dir, capfd):
    def train(watched: bool) -> tuple[str, int]:
        counter = CompileCounterWithBackend("aot_eager")
        training = Training(how, counter, dropout=0.5)
        if watched:
            td.watch(training.watched, run_dir=run_dir, rules=rules, supervise=False)
        for number in range(12):
            training.step(number)
        return training.fingerprint(), counter.frame_count

    assert train(True) == train(False)
    recordings.current.close()
    run = td.Run(run_dir)
    assert not run.names(r"^(out|in)put|^activation")
    assert [event["kind"] for event in run.events].count("not_captured") == 1
    assert capfd.readouterr().err.count("--compiled eager") == 1


def test_skip_holds_for_the_users_wishes_too(run_dir, capfd):
    def train(watched: bool) -> str:
        training = Training("module", "aot_eager", dropout=0.5)
        if watched:
            td.watch(
                training.watched,
                run_dir=run_dir,
                collect=EVERYTHING,
                compiled="skip",
                supervise=False,
            )
        for number in range(6):
            training.step(number)
        return training.fingerprint()

    assert train(True) == train(False)
    assert "--compiled eager" in capfd.readouterr().err


def test_eager_holds_for_what_rules_need_too(run_dir):
    training = Training("module", "aot_eager")
    with td.watch(
        training.watched,
        run_dir=run_dir,
        rules=["dead_relu"],
        compiled="eager",
        supervise=False,
    ):
        training.step(0)
    assert "activation/act" in td.Run(run_dir)


def has_cpp_compiler() -> bool:
    try:
        torch._dynamo.reset()
        torch.compile(lambda x: x + 1, backend="inductor")(torch.ones(2))
    except Exception:
        return False
    return True


@pytest.fixture(scope="module")
def inductor():
    if not has_cpp_compiler():
        pytest.skip("inductor finds no C++ compiler that works")


@pytest.mark.parametrize("options", [{}, {"mode": "reduce-overhead"}, {"fullgraph": True}])
def test_inductor_trains_identically_when_left_alone(options, run_dir, inductor):
    def train(watched: bool) -> str:
        training = Training("module", "inductor", dropout=0.5, **options)
        if watched:
            td.watch(training.watched, run_dir=run_dir, supervise=False)
        for number in range(6):
            training.step(number)
        return training.fingerprint()

    assert train(True) == train(False)


@pytest.mark.parametrize("options", [{}, {"mode": "reduce-overhead"}])
def test_inductor_steps_can_be_captured(options, run_dir, inductor):
    def train(watched: bool) -> list[float]:
        training = Training("module", "inductor", **options)
        if watched:
            td.watch(
                training.watched, run_dir=run_dir, collect=EVERYTHING, every=2, supervise=False
            )
        for number in range(6):
            training.step(number)
        return training.losses

    torch.testing.assert_close(train(True), train(False))
    recordings.current.close()
    assert td.Run(run_dir)["output/last"].steps().tolist() == [0, 2, 4]


@pytest.mark.parametrize("how", HOW)
def test_the_stance_is_put_back_after_whatever_ends_a_step(how, run_dir):
    before = torch._dynamo.eval_frame._stance

    def breaks(error: type[BaseException]) -> None:
        training = Training(how, "aot_eager")

        def raising(module, args, output):
            raise error("mine")

        with td.watch(training.watched, run_dir=run_dir / error.__name__, every=1, supervise=False):
            training.step(0)
            handle = training.model.last.register_forward_hook(raising)
            with pytest.raises(error):
                training.step(1)
            if error is ValueError:
                assert stance() is before, "an exception in the forward pass"
            handle.remove()
            training.step(2)
            assert stance() is not before
        assert stance() is before, "detached"

    breaks(ValueError)
    breaks(KeyboardInterrupt)
    training = Training(how, "aot_eager")
    watcher = td.watch(training.watched, run_dir=run_dir / "closed", every=1, supervise=False)
    training.step(0)
    assert stance() is not before
    recordings.current.close()
    assert stance() is before
    assert not watcher.is_active


def test_a_stance_of_the_users_is_put_back(run_dir):
    counter = CompileCounterWithBackend("aot_eager")
    training = Training("module", counter)
    plain = stance()
    with td.watch(training.watched, run_dir=run_dir, collect="outputs", every=2, supervise=False):
        training.step(0)
        training.step(1)
        with torch.compiler.set_stance("fail_on_recompile"):
            users = stance()
            training.step(2)
            assert stance() is users
            training.step(3)
        training.step(4)
        # It begins inside a step that runs uncompiled and ends outside of it.
        training.step(5)
        with torch.compiler.set_stance("fail_on_recompile"):
            training.step(6)
            assert stance().stance == "fail_on_recompile"
        assert stance().stance == plain.stance
        for number in range(7, 11):
            training.step(number)
    assert counter.frame_count == 1
    assert stance().stance == plain.stance
    torch.compiler.set_stance("default")


def test_evaluation_between_two_steps_runs_compiled(run_dir):
    counter = CompileCounterWithBackend("aot_eager")
    training = Training("module", counter)
    with td.watch(training.watched, run_dir=run_dir, collect="outputs", every=1, supervise=False):
        training.step(0)
        assert counter.frame_count == 0
        training.watched.eval()
        with torch.no_grad():
            training.watched(batch(0)[0])
        assert counter.frame_count == 1
        training.watched.train()
        training.step(1)
        assert counter.frame_count == 1


@pytest.mark.parametrize("compile_at", ["first", "watched", "due step"])
def test_an_uncompiled_model_beside_a_compiled_one_is_captured(compile_at, run_dir, recwarn):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    model, other = Net(), Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = None
    if compile_at == "first":
        compiled = torch.compile(other, backend=counter, fullgraph=True)
        compiled(batch(0)[0])
    with td.watch(model, run_dir=run_dir, rules=["dead_relu"], supervise=False):
        if compile_at == "watched":
            compiled = torch.compile(other, backend=counter, fullgraph=True)
        for number in range(24):
            if compiled is None:
                compiled = torch.compile(other, backend=counter, fullgraph=True)
            optimizer.zero_grad()
            x, y = batch(number)
            F.cross_entropy(model(x) + compiled(x).detach(), y).backward()
            optimizer.step()
    assert counter.frame_count == 1
    assert len(td.Run(run_dir)["activation/act"].steps()) > 1
    assert not [warning for warning in recwarn if "global hooks" in str(warning.message)]


def test_parts_that_are_compiled_are_named(run_dir, capfd):
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(8, 8), Net())
    counter = CompileCounterWithBackend("aot_eager")
    model[1].compile(backend=counter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, rules=["dead_relu"], supervise=False):
        for number in range(24):
            optimizer.zero_grad()
            x, y = batch(number)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert counter.frame_count == 1
    said = capfd.readouterr().err
    assert "4 of 5 modules" in said
    assert "1.first" in said
    events = [event for event in td.Run(run_dir).events if event["kind"] == "not_captured"]
    assert any("4 of 5 modules" in str(event) for event in events)


def test_a_collection_of_weights_runs_no_further_step_uncompiled(run_dir):
    counter = CompileCounterWithBackend("aot_eager")
    training = Training("module", counter)
    with td.watch(
        training.watched,
        run_dir=run_dir,
        rules=[],
        collections={"mine": "weight/first"},
        supervise=False,
    ):
        training.step(0)
        assert counter.frame_count == 0, "it might have held outputs"
        training.step(1)
        assert counter.frame_count == 1


@pytest.mark.parametrize("whole", [False, True])
def test_steps_that_end_in_compiled_code_are_found_or_said_to_be_missing(whole, run_dir, capfd):
    torch._dynamo.reset()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    update = optimizer.step
    x, y = batch(0)

    def train():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        update()

    with td.watch(model, run_dir=run_dir, rules=[], collect="losses", supervise=False):
        if whole:
            train = torch.compile(train, backend="eager")
        else:
            update = torch.compile(optimizer.step, backend="eager")
        for _ in range(3):
            train()
    run = td.Run(run_dir)
    said = "optimizer.step()" if whole else "the optimizer's step is compiled"
    assert said in capfd.readouterr().err
    assert [event["kind"] for event in run.events].count("not_captured") == 1
    assert whole or run.steps().tolist() == [0, 1, 2]


def test_an_unknown_choice_is_named(run_dir):
    with pytest.raises(td.TraindbgError, match="eagre"):
        td.watch(Net(), run_dir=run_dir, compiled="eagre", supervise=False)


def test_what_scripted_modules_hide_is_said(run_dir, capfd):
    model = nn.Sequential(nn.Linear(8, 8), torch.jit.script(Net()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, collect="outputs", supervise=False):
        optimizer.zero_grad()
        model(batch(0)[0]).sum().backward()
        optimizer.step()
    run = td.Run(run_dir)
    assert set(run.names("^output")) == {"output/0", "output/1"}
    assert "torch.jit" in capfd.readouterr().err
    assert [event["kind"] for event in run.events].count("not_captured") == 1


class WithTeacher(nn.Module):
    """Sets a part of itself to evaluation mode in its forward pass, as self-distillation does."""

    def __init__(self):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        self.teacher = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def forward(self, x):
        self.teacher.eval()
        return self.student(x) + self.teacher(x)


@pytest.mark.parametrize("watch", ["before", "after"])
def test_a_whole_graph_is_compiled_of_a_model_that_is_watched(watch, run_dir):
    results = []
    for is_watched in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = WithTeacher()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watcher = None
        if is_watched and watch == "before":
            watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        losses = []
        for step in range(30):
            model.train()
            optimizer.zero_grad()
            loss = F.mse_loss(compiled(torch.randn(8, 4)), torch.zeros(8, 4))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if is_watched and watch == "after" and step == 2:
                watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
        if watcher is not None:
            watcher.detach()
        results.append(losses)
    assert results[0] == results[1]


class Giving(nn.Module):
    """Gives values to be recorded in its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(x)
        td.save(f"hidden{x.shape[1]}", hidden)
        td.log("norm", 1.0)
        return hidden.relu()


def train_giving(run_dir, compiled, graphs, fullgraph):
    torch._dynamo.reset()
    model = Giving()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    called = torch.compile(model, backend=graphs, fullgraph=fullgraph)
    options = {"rules": [], "compiled": compiled, "supervise": False}
    outputs = {"collection": "outputs", "what": ["statistics"], "steps": [1, 2]}
    with td.watch(model, optimizer, run_dir=run_dir, capture=[outputs], **options):
        for step in range(4):
            F.cross_entropy(called(batch(step)[0]), batch(step)[1]).backward()
            optimizer.step()
    return td.Run(run_dir)


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("compiled", ["skip", "eager"])
def test_values_given_in_compiled_code_are_told_once_and_recorded_in_eager_steps(
    compiled, fullgraph, run_dir, monkeypatch, capfd
):
    monkeypatch.setattr(watching, "_are_values_compiled", False)
    graphs = CompileCounterWithBackend("aot_eager")
    run = train_giving(run_dir, compiled, graphs, fullgraph)
    assert graphs.frame_count == 1
    expected = [1, 2] if compiled == "eager" else []
    for name in ("custom/hidden8", "metric/norm"):
        assert (run[name].steps().tolist() if name in run else []) == expected
    told = [event["data"] for event in run.events if event["kind"] == "not_captured"]
    told = [entry for entry in told if "traindbg.save" in entry["what"]]
    assert len(told) == 1
    assert "torch.compiler.disable" in told[0]["reason"]
    assert capfd.readouterr().err.count("torch.compiler.disable") == 1


def test_a_later_recording_is_told_of_values_in_code_that_is_compiled_already(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(watching, "_are_values_compiled", False)
    model = Giving()
    called = torch.compile(model, backend="aot_eager", fullgraph=True)
    called(batch(0)[0])
    with td.watch(model, run_dir=tmp_path, rules=[], supervise=False):
        called(batch(0)[0])
    events = [event for event in td.Run(tmp_path).events if event["kind"] == "not_captured"]
    assert any("traindbg.save" in event["data"]["what"] for event in events)
