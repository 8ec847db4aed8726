"""One forward pass, as native hooks look at it.

Each test has a process of its own: where torch.compile was used, hooks written in Python do it.
"""

from __future__ import annotations

import json

import pytest

PROGRAM = """
import gc, json, sys, weakref
import torch
from torch import nn
from torch.nn import functional as F
import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.base.compiled import compiler_in_use
from traindbg.hooks.torch.recording.forward_sink import ForwardSink

assert not compiler_in_use()
run_dir = sys.argv[1]
torch.manual_seed(0)


def train(model, steps=4, **options):
    # The largest value of each tensor of each pass, and the outputs that went the long way.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, rules=[], every=1, supervise=False, **options):
        slow = ForwardSink.module_output
        calls = []
        ForwardSink.module_output = lambda *a: (calls.append(a[1].name), slow(*a))[1]
        for step in range(steps):
            optimizer.zero_grad()
            x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
            model(x).sum().backward()
            optimizer.step()
        ForwardSink.module_output = slow
    run = td.Run(run_dir)
    found = {}
    for name in run.names("^(in|out)put|^activation"):
        steps_of = run[name].steps().tolist()
        found[name] = {s: run.step(s).tensors[name].statistics.max for s in steps_of}
    return {"found": found, "slow": calls}
"""


@pytest.fixture
def program(forked, tmp_path):
    def run(source: str, **variables: str):
        done = forked(PROGRAM + source, str(tmp_path / "run"), TRAINDBG_STRICT="1", **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_short_way_sees_what_the_long_way_sees(program, tmp_path):
    model = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.mix = nn.Linear(8, 8)
        self.act = nn.GELU()
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + F.relu(self.drop(self.act(self.mix(self.norm(x)))), inplace=False)

model = nn.Sequential(Block(), nn.Sequential(Block(), Block()), nn.Linear(8, 3), nn.Tanh())
"""
    short = program(model + "print(json.dumps(train(model)))")
    # What micro-batches are told apart by is in the tensors' names: they go the long way.
    (tmp_path / "run").rename(tmp_path / "first")
    long = program(model + "print(json.dumps(train(model, compiled='eager', micro_batches='all')))")
    assert short["found"] == long["found"]
    assert len(short["found"]) == 1 + 3 * 5 + 2
    leaves = 3 * 4 + 2
    assert len(short["slow"]) == leaves, "in the first pass, to be named"


def test_tuples_and_functions_go_the_short_way_once_they_are_named(program):
    seen = program("""
from traindbg.hooks.torch.recording.forward_sink import ForwardSink

slow = []
long_way = ForwardSink.function_output
ForwardSink.function_output = lambda *a: (slow.append(a[2:5]), long_way(*a))[1]

class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.MultiheadAttention(8, 2, batch_first=True)
        self.lasts = nn.GRU(8, 8, batch_first=True)

    def forward(self, x):
        mixed, nothing = self.mix(x[None], x[None], x[None], need_weights=False)
        assert nothing is None
        out, last = self.lasts(F.relu(mixed))
        return torch.tanh(out) + F.relu(last)

result = train(Root(), steps=3)
print(json.dumps({**result, "functions": slow}))
""")
    assert {name: len(steps) for name, steps in seen["found"].items()} == {
        "input/0": 3,
        "output/mix.0": 3,
        "output/lasts.0": 3,
        "output/lasts.1": 3,
        "activation/model.relu": 3,
        "activation/model.tanh": 3,
        "activation/model.relu#2": 3,
    }
    assert seen["slow"] == ["mix", "lasts", "lasts"], "in the first pass, to be named"
    assert seen["functions"] == [["relu", "relu", 1], ["tanh", "tanh", 1], ["relu", "relu", 2]]


def test_outputs_of_changing_kinds_have_the_names_of_each(program):
    seen = program("""
class Changing(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        self.calls += 1
        x = x * self.weight
        return {2: (x, x + 1), 3: {"a": x}}.get(self.calls, x)

class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Changing()

    def forward(self, x):
        out = self.part(x)
        return out[0] if isinstance(out, tuple) else out["a"] if isinstance(out, dict) else out

print(json.dumps(train(Root())))
""")
    steps = {name: sorted(values) for name, values in seen["found"].items()}
    assert steps == {
        "input/0": ["0", "1", "2", "3"],
        "output/part": ["0", "3"],
        "output/part.0": ["1"],
        "output/part.1": ["1"],
        "output/part.a": ["2"],
    }


def test_a_module_that_raises_leaves_the_places_of_others_right(program):
    seen = program("""
class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        torch.sigmoid(self.inner(x))
        raise ValueError("of the model's own")

class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Raises()
        self.second = nn.Sequential(nn.Linear(8, 4))

    def forward(self, x):
        try:
            self.first(x)
        except ValueError:
            x = torch.relu(x)
        return torch.tanh(self.second(x))

print(json.dumps(train(Root())))
""")
    assert set(seen["found"]) == {
        "input/0",
        "output/first.inner",
        "activation/first.sigmoid",
        "activation/model.relu",
        "output/second.0",
        "activation/model.tanh",
    }


def test_functions_that_raise_or_take_words_are_called_as_without(program):
    answers = program("""
class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        try:
            torch.cat(tensors=[x, x[:1]], dim=1)
        except RuntimeError as error:
            errors.append(str(error).split(" ")[0])
        try:
            F.relu(x, no_such_word=1)
        except TypeError as error:
            errors.append("no_such_word" in str(error))
        return F.leaky_relu(input=self.mix(x), negative_slope=0.5)

errors = []
seen = train(Root(), 2)
print(json.dumps([errors, sorted(seen["found"])]))
""")
    assert answers == [
        ["Sizes", True] * 2,
        ["activation/model.leaky_relu", "input/0", "output/mix"],
    ]


def test_nothing_keeps_the_model_or_its_tensors(program):
    alive = program("""
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
outputs = []
watcher = td.watch(model, run_dir=run_dir, rules=[], every=1, supervise=False)
paths = weakref.ref(watcher._observer)
for _ in range(3):
    out = model(torch.ones(4, 8))
    outputs.append(weakref.ref(out))
    out.sum().backward()
    optimizer.step()
del out
during = sum(reference() is not None for reference in outputs)
watcher.detach()
modules = weakref.ref(model)
del model, optimizer, watcher
gc.collect()
print(json.dumps([during, modules() is None, paths() is None]))
""")
    assert alive == [0, True, True]


def test_a_second_model_and_another_thread_go_their_own_way(program):
    seen = program("""
import threading

other = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        thread = threading.Thread(target=lambda: other(x))
        thread.start()
        thread.join()
        return torch.relu(self.mix(x) + other(x).detach().sum())

print(json.dumps(train(Root())))
""")
    # The functions of the main thread are those of the model that called them.
    assert set(seen["found"]) == {
        "input/0",
        "output/mix",
        "activation/model.relu",
        "activation/model.tanh",
    }


THREADS = """
import threading

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.act = nn.ReLU()

    def forward(self, x):
        if threading.current_thread() is threading.main_thread():
            evaluating = threading.Thread(target=evaluate)
            evaluating.start()  # in the middle of the training's pass
            evaluating.join()
        return self.act(self.first(x))

def evaluate():
    with torch.no_grad():
        model(torch.full((4, 8), 1e6))

if len(sys.argv) > 2:
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
model = Net()
with torch.no_grad():
    model.first.weight.abs_()
    model.first.bias.zero_()
print(json.dumps(train(model)))
"""


@pytest.mark.parametrize("way", ["native", "beside the compiler"])
def test_what_another_thread_calls_meanwhile_is_none_of_the_pass(way, python, tmp_path):
    arguments = [str(tmp_path / "run")] + (["compiled"] if way != "native" else [])
    done = python(PROGRAM + THREADS, *arguments, TRAINDBG_STRICT="1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["found"]
    assert set(found) == {"input/0", "output/first", "activation/act"}
    for values in found.values():
        assert len(values) == 4
        assert max(values.values()) < 1e3, "the other thread's values are a million"


def test_nothing_is_kept_after_a_step_that_raised(program):
    kept = program("""
class Raises(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("of the user's own")

model = nn.Sequential(nn.Linear(8, 2))
optimizer = Raises(model.parameters(), lr=0.1)
everything = ("gradients", "gradients_before", "weight_updates")
with td.watch(model, run_dir=run_dir, rules=[], collect=everything, every=1, supervise=False) as w:
    recording = recordings.current
    for _ in range(2):
        model(torch.ones(4, 8)).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        try:
            optimizer.step()
        except RuntimeError:
            pass
    during = len(recording._gradients._kept), len(recording._optimizers._before)
after = len(recording._gradients._kept), len(recording._optimizers._before)
print(json.dumps([during, after, w._observer is None]))
""")
    assert kept[0] != [0, 0]
    assert kept[1:] == [[0, 0], True]


@pytest.mark.parametrize("which", ["model", "other"])
def test_a_strict_export_meanwhile_is_the_same(which, program):
    assert program(f"""
model, other = (nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with td.watch(model, run_dir=run_dir, rules=[], collect="outputs", every=1, supervise=False):
    for _ in range(2):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
    exported = torch.export.export({which}, (torch.ones(4, 8),), strict=True)
    same = torch.equal(exported.module()(torch.ones(4, 8)), {which}(torch.ones(4, 8)))
print(json.dumps(same))
""")
