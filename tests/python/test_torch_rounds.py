"""What is told of a loop that was left early: rounds, patience, and when nothing may be said."""

from __future__ import annotations

import argparse
import gc
import operator
import os
import subprocess
import sys
import textwrap
import types
import warnings
import weakref

import pytest

import traindbg as td
from traindbg.hooks.torch.text.rounds import rounds

STOPPER = """
class Stopper:
    def __init__(self, patience=5, least=0.0):
        self.patience, self.least = patience, least
        self.best, self.bad = {best}, 0
        self.early_stop = False

    def __call__(self, value):
        {body}
"""

DIRECT = """if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience"""

RETURNS = """if value < self.best:
            self.best, self.bad = value, 0
            return False
        self.bad += 1
        return self.bad >= self.patience"""

COARSE = """if value < self.best - self.least:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.bad > self.patience:
            return True
        return False"""

FLAG = """score = -value
        if self.best is None:
            self.best = score
        elif score < self.best + self.least:
            self.bad += 1
            if self.bad >= self.patience:
                self.early_stop = True
        else:
            self.best = score
            self.bad = 0"""

PLAIN = """
best, bad = 9.0, 0
for epoch in {}:
    step()
    value = evaluate()
    if value < best:
        best, bad = value, 0
    else:
        bad += 1
        if bad >= {}:
            break
"""


class Program:
    """Runs a text as a module would be, with a training of few words."""

    def __init__(self, tmp_path, monkeypatch) -> None:
        self.path = tmp_path / "program.py"
        self.module = types.ModuleType("program")
        self.module.__file__ = str(self.path)
        monkeypatch.setitem(sys.modules, "program", self.module)
        self.steps = 0
        self.evaluations = 0

    def step(self) -> None:
        rounds.steps()
        self.steps += 1

    def evaluate(self) -> float:
        """Better three times, and then five times not."""
        rounds.evaluates(self.steps)
        self.evaluations += 1
        return 4.0 - self.evaluations if self.evaluations < 4 else 2.0

    def loader(self):
        rounds.pass_begins()
        return range(3)

    def run(self, text: str, **variables) -> None:
        rounds.clear()
        self.path.write_text(textwrap.dedent(text))
        vars(self.module).update(
            step=self.step, evaluate=self.evaluate, loader=self.loader, **variables
        )
        code = compile(self.path.read_text(), str(self.path), "exec", dont_inherit=True)
        exec(code, vars(self.module))

    def left(self, text: str, **variables):
        self.run(text, **variables)
        return rounds.left(self.steps)


@pytest.fixture(name="program")
def _program(tmp_path, monkeypatch):
    yield Program(tmp_path, monkeypatch)
    rounds.clear()


def told(found) -> tuple[int, ...] | None:
    if found is None:
        return None
    assert found.gain == 0
    return found.planned, found.done, found.patience, found.sense


@pytest.mark.parametrize(
    "iterable",
    [
        "range(60)",
        "range(1, 61)",
        "range(0, 120, 2)",
        "range(60, 0, -1)",
        "range(2 * EPOCHS)",
        "range(args.epochs)",
        "range(config['epochs'])",
        "range(Settings.epochs)",
        "range(min(EPOCHS * 2, 80))",
        "tqdm(range(60), desc='epochs')",
        "trange(60)",
    ],
)
def test_rounds_of_a_loop_at_the_top_are_told_by_its_variable(program, iterable) -> None:
    def tqdm(some, desc=""):
        return some

    text = "EPOCHS = 30\nclass Settings:\n    epochs = 60\n" + PLAIN.format(iterable, 5)
    found = program.left(
        text,
        args=argparse.Namespace(epochs=60),
        config={"epochs": 60},
        tqdm=tqdm,
        trange=range,
    )
    # What the test puts into the module is not bound by its text.
    is_bound = "args" not in iterable and "config" not in iterable
    assert told(found) == ((60, 8, 5, -1) if is_bound else None)
    if found is not None:
        assert found.line.number == 6
        assert found.line.file.endswith("program.py")


@pytest.mark.parametrize(
    "made",
    [
        "import argparse\nargs = argparse.Namespace(epochs=60)\nepochs = args.epochs",
        "from types import SimpleNamespace\nargs = SimpleNamespace(epochs=60)",
        "import dataclasses\n@dataclasses.dataclass\nclass C:\n    epochs: int = 60\nargs = C()",
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--epochs', type=int, default=60)\nargs = p.parse_args([])",
        "import argparse\nargs = argparse.Namespace(epochs=60)\nif args.epochs > 99:\n    args = 3",
    ],
)
def test_attributes_of_a_modules_variables_are_known(program, made) -> None:
    text = made + "\nlimit = 4\nlimit = 5" + PLAIN.format("range(args.epochs)", "limit")
    assert told(program.left(text)) == (60, 8, 5, -1)


@pytest.mark.parametrize(
    "made",
    [
        "class C:\n    @property\n    def epochs(self): return 60\nargs = C()",
        "class C:\n    def __getattr__(self, name): return 60\nargs = C()",
        "class C:\n    __slots__ = ('epochs',)\nargs = C()\nargs.epochs = 60",
        "class C:\n    epochs = 60\nargs = C()\ndef later():\n    args.epochs = 3",
        "def later():\n    global args\n    args = 3\nclass C:\n    epochs = 60\nargs = C()",
        "class C:\n    epochs = True\nargs = C()",
        "class C:\n    epochs = 60.0\n    def __index__(self): return 1\nargs = C()",
    ],
)
def test_what_may_be_something_else_is_not(program, made) -> None:
    if "60.0" in made:
        made = made.replace("60.0", "200_000")
    assert program.left(made + "\n" + PLAIN.format("range(args.epochs)", 5)) is None


IN_MAIN = """
from dataclasses import dataclass, field

{config}

def train(cfg):
    best, bad = 9.0, 0
    for epoch in range(cfg.epochs):
        step()
        value = evaluate()
        if value < best:
            best, bad = value, 0
        else:
            bad += 1
        if bad >= 5:
            break

def main(switch=None):
    cfg = {made}
    train(cfg)

main()
"""


@pytest.mark.parametrize(
    ("config", "made", "is_known"),
    [
        ("@dataclass\nclass C:\n    width: int = 3\n    epochs: int = 60", "C()", True),
        ("@dataclass\nclass C:\n    width: int = 3\n    epochs: int = 9", "C(epochs=60)", True),
        ("@dataclass\nclass C:\n    width: int = 3\n    epochs: int = 9", "C(8, 60)", True),
        ("@dataclass(frozen=True)\nclass C:\n    epochs: int = field(default=60)", "C()", True),
        ("class C:\n    width = 3\n    epochs = 60", "C()", True),
        # Another thing may have a field of the same name.
        (
            "@dataclass\nclass C:\n    epochs: int = 60\n"
            "class D:\n    def __init__(self): self.epochs = 3",
            "C()",
            True,
        ),
        (
            "@dataclass\nclass C:\n    epochs: int = 60\n"
            "class D(C):\n    def f(self): self.epochs = 3",
            "C()",
            False,
        ),
        # Of two that may have been made, where both say the same.
        ("@dataclass\nclass C:\n    epochs: int = 60", "C() if switch else C(60)", True),
        ("@dataclass\nclass C:\n    epochs: int = 60", "C() if switch else C(epochs=8)", False),
        ("@dataclass\nclass C:\n    epochs: int = 60", "C(**{})", False),
        ("@dataclass\nclass C:\n    epochs: int = 60", "C(*[60])", False),
        ("class C:\n    epochs = 60\n    def __init__(self): self.epochs = 60", "C()", False),
        (
            "@dataclass\nclass C:\n    epochs: int = 60\n    def __post_init__(self): pass",
            "C()",
            False,
        ),
        ("class B:\n    epochs = 60\nclass C(B):\n    pass", "C()", False),
        ("@dataclass\nclass C:\n    epochs: int = 60\ndef f(c): c.epochs = 9", "C()", False),
        (
            "@dataclass\nclass C:\n    epochs: int = 60\ndef f(c): setattr(c, 'epochs', 9)",
            "C()",
            False,
        ),
        ("class C:\n    @property\n    def epochs(self): return 60", "C()", False),
        (
            "@dataclass\nclass C:\n    best: int = field(default=9, init=False)\n"
            "    epochs: int = 9",
            "C(60)",
            False,
        ),
        ("class C:\n    epochs = 10\n    if True:\n        epochs = 60", "C()", False),
        ("class C:\n    epochs = 10\n    epochs += 50", "C()", False),
        ("class C:\n    epochs = 10\n    (epochs, other) = (60, 2)", "C()", False),
        ("few = 10\nclass C:\n    few = 60\n    epochs = few", "C()", False),
    ],
)
def test_what_is_made_of_a_class_in_a_function(program, config, made, is_known) -> None:
    found = program.left(IN_MAIN.format(config=config, made=made))
    assert told(found) == ((60, 8, 5, -1) if is_known else None)


FUNCTION = """
EPOCHS = 60

def train({parameters}):
    best, bad = 9.0, 0
    for epoch in range({rounds}):
        {body}
        value = evaluate()
        if value < best:
            best, bad = value, 0
        else:
            bad += 1
        if bad >= patience:
            {leave}

def main():
    train({given})

if __name__ == "program":
    main()
"""


@pytest.mark.parametrize(
    ("parameters", "number", "given"),
    [
        ("epochs, patience=5", "epochs", "60"),
        ("epochs=60, patience=5", "epochs", ""),
        ("patience, epochs=7", "epochs", "5, epochs=EPOCHS"),
        ("*, patience, epochs=60", "epochs", "patience=5"),
        ("patience=5", "EPOCHS", ""),
        ("patience=5, epochs=6", "epochs * 10", ""),
    ],
)
@pytest.mark.parametrize("leave", ["break", "return value", "return"])
def test_a_function_is_followed_to_its_call(program, parameters, number, given, leave) -> None:
    text = FUNCTION.format(
        parameters=parameters, rounds=number, given=given, leave=leave, body="step()"
    )
    assert told(program.left(text)) == (60, 8, 5, -1)


@pytest.mark.parametrize(
    ("parameters", "number", "given"),
    [
        ("epochs, patience=5", "epochs", "**dict(epochs=60)"),
        ("epochs, patience=5", "epochs", "*[60]"),
        ("epochs=60, patience=5", "unknown()", ""),
        ("patience=5, epochs=60", "args.epochs", ""),
    ],
)
def test_a_number_that_is_not_certain_is_not_told(program, parameters, number, given) -> None:
    text = FUNCTION.format(
        parameters=parameters, rounds=number, given=given, leave="break", body="step()"
    )
    text = text.replace("    best, bad = 9.0", "    args = make()\n    best, bad = 9.0")
    found = program.left(text, unknown=lambda: 60, make=lambda: argparse.Namespace(epochs=60))
    assert found is None


def test_rounds_are_counted_by_passes_and_in_inner_functions(program) -> None:
    text = """
    def train_epoch(batches):
        for batch in batches:
            step()

    def fit(epochs, patience):
        best, bad = 9.0, 0
        for epoch in range(epochs):
            for batch in loader():
                step()
            if epoch % 1 == 0:
                value = evaluate()
            bad = 0 if value < best else bad + 1
            best = min(best, value)
            if bad >= patience:
                return

    fit(patience=5, epochs=60)
    """
    assert told(program.left(text)) == (60, 8, 5, -1)


@pytest.mark.parametrize(
    "body",
    [
        "if epoch > 0: step()\n        step()\n        if epoch % 3: continue",
        "if epoch == 99: return",
    ],
)
def test_rounds_that_cannot_be_counted_are_not_told(program, body) -> None:
    text = FUNCTION.format(
        parameters="patience=5",
        rounds="60",
        given="",
        leave="break",
        body="step()\n        " + body,
    )
    assert program.left(text) is None


CLASS = """
class Trainer:
    def __init__(self, epochs=10, patience=5):
        self.epochs = epochs
        self.patience = patience
        self.best, self.bad = 9.0, 0

    def train_epoch(self):
        for _ in range(3):
            step()

    def worse(self, value):
        if value >= self.best:
            self.bad += 1
        else:
            self.best, self.bad = value, 0
        return self.bad >= self.patience

    def fit(self):
        for epoch in range(self.epochs):
            self.train_epoch()
            if self.worse(evaluate()):
                break

def main():
    trainer = Trainer({})
    trainer.fit()
{}
main()
"""


@pytest.mark.parametrize("given", ["60", "epochs=60", "60, patience=5"])
def test_a_trainer_that_is_made_once_is_read(program, given) -> None:
    assert told(program.left(CLASS.format(given, ""))) == (60, 8, 5, -1)


@pytest.mark.parametrize(
    "more",
    [
        "    trainer.epochs = 60",
        "other = Trainer(3)",
        "class Other(Trainer): pass",
    ],
)
def test_one_that_may_have_another_number_is_not(program, more) -> None:
    assert program.left(CLASS.format("60", more)) is None


@pytest.mark.parametrize(
    ("body", "test", "patience", "gain"),
    [
        (DIRECT, "if stop(value):", 5, 0),
        (RETURNS, "if stop(value):", 5, 0),
        (COARSE, "if stop(value):", 6, 0.25),
        (FLAG, "stop(value)\n    if stop.early_stop:", 5, 0.25),
        (DIRECT, "over = stop(value)\n    if over:", 5, 0),
    ],
)
def test_an_early_stopping_in_a_class_is_known(program, body, test, patience, gain) -> None:
    best = "None" if body is FLAG else 9.0
    text = (
        STOPPER.format(best=best, body=body)
        + "loud = False\nstop = Stopper(patience=5, least=0.5 if loud else 0.25)\n"
        + "for epoch in range(60):\n    step()\n    value = evaluate()\n"
        + f"    {test}\n        break\n"
    )
    found = program.left(text)
    assert found is not None
    assert (found.planned, found.patience, found.sense) == (60, patience, -1)
    assert found.gain == gain


@pytest.mark.parametrize(
    ("update", "test", "patience", "gain", "sense"),
    [
        ("if value < best: best, best_at = value, epoch", "epoch - best_at >= 5", 5, 0, -1),
        ("if value > best: best, best_at = value, epoch", "epoch - best_at > 4", 5, 0, 1),
        ("if value + 0.1 < best: best, best_at = value, epoch", "epoch - best_at >= 5", 5, 0.1, -1),
        (
            "improved = value < best\n    if improved:\n        best, left = value, 5\n"
            "    else:\n        left -= 1",
            "left == 0",
            0,
            0,
            -1,
        ),
        (
            "if epoch == 0 or value < best:\n        best = value\n        bad = 0\n"
            "    else:\n        bad = bad + 1",
            "bad == 5",
            5,
            0,
            -1,
        ),
        (
            "if not value < best:\n        bad += 1\n    else:\n        best, bad = value, 0",
            "5 <= bad and epoch > 1",
            5,
            0,
            -1,
        ),
        (
            "if best - value > 2 * 0.05: best, bad = value, 0\n    else: bad += 1",
            "bad >= 5",
            5,
            -1,
            -1,
        ),
        (
            "if best - value > 0.1:\n        best, bad = value, 0\n    else:\n        bad += 1",
            "bad >= 5",
            5,
            0.1,
            -1,
        ),
        (
            "if value < 0.99 * best:\n        best, bad = value, 0\n    else:\n        bad += 1",
            "bad >= 5",
            5,
            -1,
            -1,
        ),
    ],
)
def test_ways_to_write_an_early_stopping(program, update, test, patience, gain, sense) -> None:
    text = f"""
best, bad, best_at, left = 9.0, 0, 0, 5
for epoch in range(60):
    step()
    value = evaluate()
    {update}
    if {test}:
        break
"""
    found = program.left(text)
    assert found is not None
    assert (found.planned, found.patience, found.sense) == (60, patience, sense)
    assert found.gain == gain
    assert found.done < 12


@pytest.mark.parametrize(
    "body",
    [
        "if value > 1.5:\n        break",  # a target
        "if value > target:\n        break",
        "if time.time() > end:\n        break",
        "if epoch >= 7:\n        break",
        "count += 1\n    if count >= 7:\n        break",
        "if epoch % 1 == 0:\n        count += 1\n    if count >= 7:\n        break",
        "if value > target:\n        count += 1\n    else:\n        count = 0\n"
        "    if count >= 3:\n        break",  # solved
        "if value < best:\n        best = value\n    else:\n        count += 1\n"
        "    if count >= 5 or value > target:\n        break",
        "if value < best:\n        best = value\n    else:\n        count += 1\n"
        "    if count >= 5:\n        break\n    if time.time() > end:\n        break",
        "if value < best:\n        best = value\n    else:\n        count += 1\n"
        "    if count >= 5:\n        sys.exit(0)\n        break",
        "try:\n        pass\n    except KeyboardInterrupt:\n        break\n    if epoch > 7:\n"
        "        break",
        "if epoch > 7:\n        raise SystemExit",
        "if value < best:\n        best = value\n    else:\n        count += 1\n"
        "    if count >= 5:\n        break\n    if not math.isfinite(value):\n        break",
        "pass",
    ],
)
def test_loops_that_are_left_for_other_reasons_are_not_told(program, body) -> None:
    text = f"""
import math, sys, time
best, count, target, end = 9.0, 0, 1.5, time.time() - 1
for epoch in range(60):
    step()
    value = evaluate()
    {body}
"""
    try:
        found = program.left(text)
    except SystemExit:
        found = rounds.left(program.steps)
    assert found is None


@pytest.mark.parametrize(
    "text",
    [
        "for seed in range(3):\n" + textwrap.indent(PLAIN.format("range(60)", 5), "    "),
        "while True:\n" + textwrap.indent(PLAIN.format("range(60)", 5), "    ") + "    break\n",
        PLAIN.format("range(60)", 5) + PLAIN.format("range(60)", 5),
        PLAIN.format("range(200_000)", 5),
        PLAIN.format("[1] * 60", 5),
        PLAIN.format("range(unknown())", 5),
        "range = list\n" + PLAIN.format("range([1] * 60)", 5),
        "try:\n" + textwrap.indent(PLAIN.format("range(60)", 5), "    ") + "except OSError: pass\n",
        "import contextlib\nwith contextlib.ExitStack():\n"
        + textwrap.indent(PLAIN.format("range(60)", 5), "    "),
        "import contextlib\ndef f():\n"
        + textwrap.indent(PLAIN.format("range(60)", 5), "    ")
        + "with contextlib.nullcontext():\n    f()\n",
        "def f():\n"
        + textwrap.indent(PLAIN.format("range(60)", 5), "    ")
        + "[f() for _ in '12']\n",
        "def f():\n" + textwrap.indent(PLAIN.format("range(60)", 5), "    ") + "f()\nf()\n",
        "def f():\n" + textwrap.indent(PLAIN.format("range(60)", 5), "    ") + "print(f(), f())\n",
        "def f():\n"
        + textwrap.indent(PLAIN.format("range(60)", 5), "    ")
        + "list(map(lambda _: f(), '12'))\n",
    ],
)
def test_several_trainings_and_loops_without_a_plan_are_not_told(program, text) -> None:
    assert program.left(text, unknown=lambda: 60) is None


def test_a_file_that_was_changed_is_not_read(program) -> None:
    program.run(PLAIN.format("range(60)", 5))
    program.path.write_text(PLAIN.format("range(70)", 5))
    assert rounds.left(program.steps) is None


def test_a_loop_that_goes_on_is_not_told(program) -> None:
    seen = []
    program.run(
        PLAIN.format("range(60)", 5) + "    if epoch == 6: look()\n",
        look=lambda: seen.append(rounds.left(program.steps)),
    )
    assert seen == [None]


def test_no_frame_and_no_local_variable_is_kept(program) -> None:
    program.run(PLAIN.format("range(60)", 5))
    assert {*rounds._steps, *rounds._evaluations} == set(rounds._stacks)
    for stack in rounds._stacks.values():
        assert all(isinstance(code, types.CodeType) for code, _ in stack)


class Thing:
    """What a program may hold."""


def test_the_variables_of_a_program_that_is_gone_are_not_kept(program) -> None:
    program.run("thing = make()\n" + PLAIN.format("range(60)", 5), make=Thing)
    thing = weakref.ref(program.module.thing)
    other = types.ModuleType("program")
    sys.modules["program"] = program.module = other
    gc.collect()
    assert thing() is None
    # Another module of that name says nothing of it.
    assert rounds.left(program.steps) is None


def test_python_does_not_warn_again_of_a_file(program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.run("pattern = '\\d'\nif 3 is 3: pass\n" + PLAIN.format("range(60)", 5))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = rounds.left(program.steps)
    assert told(found) == (60, 8, 5, -1)
    assert seen == []


def test_a_proxy_is_asked_nothing(program) -> None:
    asked: list[str] = []

    class Proxy:
        def __getattribute__(self, name):
            asked.append(name)
            raise AttributeError(name)

        def __call__(self):
            return lambda value: False

    text = """
stop = Stopper()
for epoch in range(9):
    step()
    if stop(evaluate()):
        break
"""
    program.run("Stopper = make()" + text, make=Proxy)
    assert rounds.left(program.steps) is None
    assert asked == []


def test_codes_are_told_apart_without_their_hash(program) -> None:
    """Its constants would be hashed at each note."""
    hashed: list[int] = []

    class Number(int):
        def __hash__(self):
            hashed.append(1)
            return 1

    def notes() -> None:
        rounds.steps()

    program.run("pass")
    code = notes.__code__.replace(
        co_filename=str(program.path),
        co_name="<module>",
        co_consts=(*notes.__code__.co_consts, Number(7)),
    )
    hashed.clear()
    exec(code, {"rounds": rounds, "__name__": "program"})
    assert len(rounds._steps) == 1
    assert () not in rounds._steps
    assert hashed == []


def test_a_large_file_is_not_read(program) -> None:
    text = PLAIN.format("range(60)", 5)
    assert program.left(text + "#" * (256 << 10)) is None


IN_ANOTHER_FILE = """
from {name} import Stopper
stop = Stopper()
for epoch in range(60):
    step()
    if stop(evaluate()):
        break
"""


@pytest.mark.parametrize("change", ["", "patience=25", "patience >= 0"])
def test_another_file_is_read_only_as_it_runs(program, tmp_path, monkeypatch, change) -> None:
    name, path = f"stopper_{abs(hash(change))}", tmp_path / "stopper.py"
    text = STOPPER.format(best="float('inf')", body=DIRECT)
    path.write_text(text)
    os.utime(path, (1e9, 1e9))
    module = types.ModuleType(name)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    program.run(IN_ANOTHER_FILE.format(name=name))
    if change == "patience=25":  # which the functions' codes do not tell
        path.write_text(text.replace("patience=5", change))
    elif change:
        path.write_text(text.replace("bad >= self.patience", "bad > self.patience"))
        os.utime(path, (1e9, 1e9))
    found = rounds.left(program.steps)
    assert told(found) == (None if change else (60, 8, 5, -1))


@pytest.mark.parametrize("is_within", [True, False])
def test_a_process_that_is_left_within_the_loop_did_not_stop_early(program, is_within) -> None:
    text = PLAIN.format("range(60)", 5)
    text += "    if epoch == 6: leave()\n" if is_within else "leave()\n"

    def leave() -> None:
        rounds.exits()
        raise SystemExit(0)

    with pytest.raises(SystemExit):
        program.run(text, leave=leave)
    assert told(rounds.left(program.steps)) == (None if is_within else (60, 8, 5, -1))


@pytest.mark.parametrize(
    "way", ["raise SystemExit", "raise SystemExit(0)", "exit(0)", "os._exit(0)"]
)
def test_a_program_that_may_end_unheard_is_not_told(program, way) -> None:
    text = f"import os\ndef report(value):\n    if value < 0: {way}\n"
    text += PLAIN.format("range(60)", 5)
    assert program.left(text) is None
    assert program.left(text.replace(way, "pass")) is not None


@pytest.mark.parametrize(
    ("first", "is_told"),
    [
        ("9.0", True),
        ("float('inf')", True),
        ("math.inf", True),
        ("-math.inf if flag else 1e9", True),
        ("baseline()", False),
        ("saved", False),
        ("saved['best']", False),
        ("2 * saved['best']", False),
    ],
)
def test_a_first_best_value_that_may_be_meant_is_not_told(program, first, is_told) -> None:
    text = "import math\nflag = False\n" + PLAIN.format("range(60)", 5)
    text = text.replace("best, bad = 9.0", f"best, bad = {first}")
    found = program.left(
        text, baseline=lambda: 9.0, saved=9.0 if first == "saved" else {"best": 9.0}
    )
    assert (found is not None) == is_told
    text = (
        "import math\nflag = False\n"
        + STOPPER.format(best=first, body=DIRECT)
        + "stop = Stopper()\nfor epoch in range(60):\n    step()\n"
        + "    if stop(evaluate()):\n        break\n"
    )
    program.evaluations = program.steps = 0
    assert (program.left(text) is not None) == is_told


@pytest.mark.parametrize(
    "more",
    [
        "stop.best = 1.5\n",
        "def resume(state):\n    stop.best = state\n",
    ],
)
def test_a_best_value_that_is_loaded_is_not_told(program, more) -> None:
    text = (
        STOPPER.format(best="9.0", body=DIRECT)
        + "stop = Stopper()\n{}for epoch in range(60):\n    step()\n"
        + "    if stop(evaluate()):\n        break\n"
    )
    assert program.left(text.format("")) is not None
    program.evaluations = program.steps = 0
    assert program.left(text.format(more)) is None


SCRIPT = """
import torch
from torch import nn
import traindbg as td

def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()

def main():
    x, y = torch.randn(32, 4), torch.randn(32, 1)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    td.watch(model, optimizer, run_dir={run_dir!r}, supervise=False, rules=["stopped_too_early"])
    best, bad = 0.0, 0
    for epoch in range(60):
        model.train()
        for _ in range(10):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        value = evaluate(model, x, y)
        if value < best:
            best, bad = value, 0
        else:
            bad += 1
        if bad >= 5:
            break
    {end}

main()
"""


@pytest.mark.parametrize(
    "end",
    ["pass", "__import__('sys').exit(0)", "raise ValueError('later')", "raise KeyboardInterrupt"],
)
def test_a_script_tells_it_at_its_end_unless_trouble_ends_it(tmp_path, end) -> None:
    path, run_dir = tmp_path / "train.py", tmp_path / "run"
    path.write_text(SCRIPT.format(run_dir=str(run_dir), end=end))
    is_whole = not end.startswith("raise")
    subprocess.run([sys.executable, str(path)], check=is_whole, capture_output=True)
    run = td.Run(run_dir)
    facts = {name: list(run.tensor(name).values("value")) for name in run.names("loop/rounds")}
    if not is_whole:
        assert facts == {}
        return
    line = SCRIPT.split("\n").index("    for epoch in range(60):") + 1
    assert facts == {
        f"loop/rounds_planned/train.py:{line}": [60],
        "loop/rounds_done": [5],
        "loop/rounds_patience": [5],
        "loop/rounds_least_gain": [0],
        "loop/rounds_sense": [-1],
        "loop/rounds_kind": [0],
    }


def test_a_script_that_a_signal_ends_was_not_stopped_early(tmp_path) -> None:
    path, run_dir = tmp_path / "train.py", tmp_path / "run"
    text = SCRIPT.format(run_dir=str(run_dir), end="pass").replace(
        "        value = evaluate(model, x, y)\n",
        "        value = evaluate(model, x, y)\n"
        "        if epoch == 3: signal.raise_signal(signal.SIGINT)\n",
    )
    handler = "signal.signal(signal.SIGINT, lambda *_: sys.exit(0))\n"
    path.write_text("import signal, sys\n" + handler + text)
    subprocess.run([sys.executable, str(path)], check=True, capture_output=True)
    assert list(td.Run(run_dir).names("loop/rounds")) == []


def test_an_object_that_is_made_where_its_method_is_called(program) -> None:
    text = CLASS.format("60", "").replace(
        "    trainer = Trainer(60)\n    trainer.fit()", "    Trainer(60).fit()"
    )
    assert told(program.left(text)) == (60, 8, 5, -1)


TRAINED = "t = far(3) + 2 * near(); later = lambda: 3; epoch < 0 and t.backward()"
ASKED = """
def far(some=0): return 4.0
def near(): return 1.0

class Stopper:
    def __init__(self, mode="max", patience=5):
        self.patience, self.sign = patience, 1 if mode == "max" else -1
        self.best, self.bad = None, 0

    def __call__(self, value):
        score = {score}
        if self.best is None or score > self.best:
            self.best, self.bad = score, 0
        else:
            self.bad += 1
        return self.bad >= self.patience

IS_LOSS = False
stopper = {made}
for epoch in range(60):
    step()
    loss = evaluate()
    {value}
    if stopper({given}):
        break
"""


@pytest.mark.parametrize(
    ("score", "made", "value", "given", "found"),
    [
        ("self.sign * value", "Stopper()", "val_loss = loss", "val_loss", (1, 1)),
        ("self.sign * value", "Stopper('min')", "val_loss = loss", "val_loss", (-1, 1)),
        ("self.sign * value", "Stopper(mode='min')", "v = sum([loss])", "v", (-1, 0)),
        ("self.sign * value", "Stopper(mode='min')", "v = float(loss)", "v", (-1, 1)),
        ("self.sign * value", "Stopper()", "val_loss = loss", "-val_loss", (-1, 1)),
        ("-value", "Stopper()", "val_loss = loss", "val_loss", (-1, 1)),
        ("value\n        score *= self.sign", "Stopper()", "pass", "loss", (1, 1)),
        ("value\n        score *= self.sign", "Stopper('min')", "pass", "loss", (-1, 1)),
        ("value\n        score *= unknown()", "Stopper('min')", "pass", "loss", (0, 0)),
        ("-value", "Stopper()", "val_loss = loss", "-val_loss", (1, 1)),
        ("value", "Stopper()", "score = loss", "score", (1, 1)),
        ("value", "Stopper()", "score = -loss", "score", (-1, 1)),
        ("value", "Stopper()", "accuracy = evaluate()", "accuracy", (1, 0)),
        ("value", "Stopper()", "neg_loss = evaluate()", "neg_loss", (1, 0)),
        ("value", "Stopper()", "val_loss, n = [evaluate(), 3]", "val_loss", (1, 1)),
        ("value", "Stopper()", "history = {'val_loss': loss}", "history['val_loss']", (1, 1)),
        (
            "self.sign * value",
            "Stopper(mode='min') if IS_LOSS else Stopper()",
            "pass",
            "loss",
            (1, 1),
        ),
        (
            "self.sign * value",
            "Stopper(mode='min') if not IS_LOSS else Stopper()",
            "pass",
            "loss",
            (-1, 1),
        ),
        ("value", "Stopper()", "later = lambda: loss.backward()", "loss", (1, 1)),
        ("value", "Stopper()", "v = far(step()) + 2 * near()", "v", (1, 0)),
        ("value", "Stopper()", f"{TRAINED}; v = far(1) + 2 * near()", "v", (1, 1)),
        ("-value", "Stopper()", f"{TRAINED}; v = far(1) + 2 * near()", "float(v)", (-1, 1)),
        ("value", "Stopper()", f"{TRAINED}; v = far(1) + 3 * near()", "v", (1, 0)),
        ("value", "Stopper()", f"{TRAINED}; v = -(far(1) + 2 * near())", "v", (-1, 1)),
        ("value", "Stopper()", "if epoch < 0: loss.backward()", "loss", (1, 2)),
    ],
)
def test_what_an_early_stopping_is_given(program, score, made, value, given, found) -> None:
    text = ASKED.format(score=score, made=made, value=value, given=given)
    left = program.left(text, unknown=lambda: 1)
    assert left is not None
    assert (left.sense, left.kind) == found


BY_MODE = """
class Stopper:
    def __init__(self, mode="max", patience=5):
        self.patience, self.mode, self.least = patience, mode, 0.0
        self.best, self.bad = None, 0

    def __call__(self, value):
        {better}
        if better:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience

stopper = {made}
for epoch in range(60):
    step()
    val_loss = evaluate()
    if stopper(val_loss):
        break
"""
IN_ONE = """better = self.best is None or (
            value > self.best + self.least if self.mode == "max" else value < self.best - self.least
        )"""
IN_BRANCHES = """if self.best is None:
            better = True
        elif self.mode == "max":
            better = value > self.best + self.least
        else:
            better = value < self.best - self.least"""
IN_TWO = """if self.mode == "max":
            better = self.best is None or value > self.best
        else:
            better = self.best is None or value < self.best"""


IN_BOTH = """better = (
            self.best is None
            or (self.mode == "min" and value < self.best)
            or (self.mode == "max" and value > self.best)
        )"""
BY_STEPS = """better = self.best is None
        if self.mode == "max":
            if not better and value > self.best + self.least:
                better = True
        elif not better and value < self.best - self.least:
            better = True"""


@pytest.mark.parametrize("better", [IN_ONE, IN_TWO, IN_BRANCHES, IN_BOTH])
@pytest.mark.parametrize(("made", "sense"), [("Stopper()", 1), ("Stopper(mode='min')", -1)])
def test_a_stopping_that_is_told_which_way_is_better(program, better, made, sense) -> None:
    left = program.left(BY_MODE.format(better=better, made=made))
    assert left is not None
    assert (left.sense, left.kind) == (sense, 1)


def test_of_more_branches_than_that_nothing_is_said(program) -> None:
    assert program.left(BY_MODE.format(better=BY_STEPS, made="Stopper()")) is None


@pytest.mark.parametrize("better", [IN_ONE, IN_TWO, IN_BRANCHES, IN_BOTH])
def test_of_a_mode_that_is_not_known_no_way_is_told(program, better) -> None:
    text = BY_MODE.format(better=better, made="Stopper(unknown())")
    left = program.left(text, unknown=lambda: "min")
    assert left is None or (left.sense, left.kind) == (0, 0)


HOOK = """
import math
import operator
import numpy as np
from operator import lt

def lower(one, other):
    return one < other

class Hook:
    def __init__(self, monitor, rule="less", patience=3, least=0.0):
        self.monitor, self.rule, self.patience = monitor, rule, patience
        self.higher, self.least = rule == "greater", least
        self.sign = {{"greater": 1.0, "less": -1.0}}[rule]
        {more}
        self.best, self.waited = None, 0

    def is_better(self, value):
        {better}

    def should_stop(self, metrics):
        value = {value}
        {anew}
        if {asked}:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience

class Trainer:
    def __init__(self{parameter}):
        {made}

    def validate(self):
        return evaluate(), 0.5

    def fit(self):
        for epoch in range(60):
            step()
            val_loss, accuracy = self.validate()
            if self.hook.should_stop({given}):
                break

def main():
    trainer = Trainer({argument})
    trainer.fit()

main()
"""
BY_RULE = """if self.best is None:
            return True
        return value > self.best if self.rule == "greater" else value < self.best"""
BY_FLAG = """if self.best is None:
            return True
        if self.higher:
            return value > self.best + self.least
        return value < self.best - self.least"""
BY_CONSTANTS = """if math.isnan(value):
            return False
        if self.rule in ("less", "lower"):
            if self.best is None or value < self.best:
                return True
        elif self.best is None or value > self.best:
            return True
        return False"""
HELD = {
    "better": BY_RULE,
    "value": "metrics[self.monitor]",
    "anew": "pass",
    "asked": "self.is_better(value)",
    "more": "pass",
    "parameter": "",
    "made": "self.hook = Hook({})",
    "given": "{'val_loss': val_loss, 'accuracy': accuracy}",
    "argument": "",
}
BY_OPERATOR = {"asked": "self.best is None or self.op(value, self.best)"}
GREATER, LESS = (1, 1), (-1, 1)


def held(how: str, rule: str, **changes: str) -> str:
    parts = {**HELD, **changes}
    parts["made"] = parts["made"].format(f"'val_loss', rule={rule!r}")
    parts["argument"] = parts["argument"].format(f"'val_loss', rule={rule!r}")
    return how.format(**parts)


@pytest.mark.parametrize(("rule", "found"), [("greater", GREATER), ("less", LESS)])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"better": BY_FLAG},
        {"better": BY_CONSTANTS},
        {"value": "metrics.get(self.monitor)"},
        {"given": "dict_of(val_loss)"},
        {"given": "{'val_loss': float(val_loss)}"},
        {
            "better": "return self.sign * value > self.best",
            "asked": "self.best is None or self.is_better(value)",
        },
        {"anew": "value = self.sign * value", "asked": "self.best is None or value > self.best"},
        {
            "value": "self.sign * metrics[self.monitor]",
            "asked": "self.best is None or value > self.best",
        },
        {"more": "self.op = operator.gt if rule == 'greater' else lt", **BY_OPERATOR},
        {"more": "self.op = {'greater': np.greater, 'less': np.less}[rule]", **BY_OPERATOR},
        {
            "more": "self.op = (lambda a, b: a > b) if self.rule == 'greater' else "
            "(lambda a, b: a < b - least)",
            **BY_OPERATOR,
        },
        {
            "asked": "self.best is None or "
            "(lower(self.best, value) if self.higher else lower(value, self.best))"
        },
        {
            "parameter": ", hook",
            "made": "self.hook = hook",
            "argument": "Hook({})",
        },
    ],
)
def test_a_stopping_that_is_held_and_given_metrics(program, changes, rule, found) -> None:
    left = program.left(held(HOOK, rule, **changes), dict_of=lambda loss: {"val_loss": loss})
    assert left is not None
    assert (left.planned, left.patience, left.sense, left.kind) == (60, 3, *found)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        # It may have another rule, or another one is asked.
        ({"made": "self.hook = Hook({})\n        Hook('val_loss', 'less')"}, (0, 0)),
        ({"made": "self.hook = Hook({})\n        self.hook.rule = 'less'"}, (0, 0)),
        ({"more": "setattr(self, 'rule', 'less')"}, None),
        ({"more": "self.is_better = lambda value: False"}, (0, 0)),
        ({"made": "self.hook = Hook({})\n        self.hook = Hook('val_loss', 'less')"}, None),
        ({"better": "if self.waited > 9:\n            return True\n        " + BY_RULE}, (0, 0)),
        (
            {"better": "with open(__file__):\n            return value > (self.best or 0)"},
            (0, 0),
        ),
        ({"better": "return unknown(value)"}, (0, 0)),
        ({"better": "return value > (self.best or 0) if unknown() else False"}, (0, 0)),
        ({"asked": "self.best is None or operator.gt(value, self.best)"}, (1, 1)),
        ({"asked": "self.best is None or other.gt(value, self.best)"}, (0, 0)),
        # It is given something else.
        ({"given": "{'val_loss': -val_loss}"}, (-1, 1)),
        ({"given": "{'val_loss': 1 / (1 + val_loss)}"}, (1, 0)),
        ({"given": "{'val_loss': 1 - val_loss}"}, (1, 0)),
        ({"given": "{**{'val_loss': 0.5}, 'accuracy': accuracy}"}, (1, 1)),
        ({"given": "{'val_loss': -accuracy, **dict()}"}, (1, 1)),
        ({"anew": "value = unknown() * value"}, (0, 0)),
        ({"anew": "value = -value if unknown() else value"}, (0, 0)),
        ({"anew": "value = 1 - value"}, (0, 0)),
    ],
)
def test_a_stopping_of_which_not_all_is_certain(program, changes, found) -> None:
    left = program.left(held(HOOK, "greater", **changes), unknown=lambda *_: 1, other=operator)
    told = None if left is None else (left.sense, left.kind)
    assert told == found


def test_a_method_that_another_class_may_have_anew_is_not_read(program) -> None:
    more = "\nclass Other(Hook):\n    def is_better(self, value): return True\n\nclass Trainer"
    left = program.left(held(HOOK, "greater").replace("\nclass Trainer", more))
    assert left is not None
    assert (left.sense, left.kind) == (0, 0)


def test_the_least_gain_of_a_method_that_is_asked_is_known(program) -> None:
    text = held(HOOK, "less", better=BY_FLAG).replace("rule='less'", "rule='less', least=0.25")
    left = program.left(text)
    assert left is not None
    assert (left.sense, left.gain) == (-1, 0.25)


def test_a_variable_of_a_closure_is_not_taken_for_a_modules(program) -> None:
    text = held(HOOK, "less", more="self.op = lambda a, b: a < b - least", **BY_OPERATOR)
    left = program.left("least = 0.5\n" + text)
    assert left is not None
    assert (left.sense, left.gain) == (-1, -1)


def test_a_flag_that_an_inner_function_changes_is_not_known(program) -> None:
    text = held(HOOK, "greater").replace(
        "    trainer = Trainer()",
        "    rule = 'greater'\n    def turn():\n        nonlocal rule\n        rule = 'less'\n"
        "    turn()\n    trainer = Trainer(Hook('val_loss', rule=rule))",
    )
    text = text.replace(
        "def __init__(self):\n        self.hook = Hook('val_loss', rule='greater')",
        "def __init__(self, hook):\n        self.hook = hook",
    )
    left = program.left(text)
    assert left is not None
    assert left.sense == 0


def test_what_a_stopping_with_a_flag_is_given(program) -> None:
    text = STOPPER.format(best="None", body=FLAG) + textwrap.dedent(
        """
        stopper = Stopper()
        for epoch in range(60):
            step()
            val_loss = evaluate()
            stopper(val_loss)
            if stopper.early_stop:
                break
        """
    )
    left = program.left(text)
    assert left is not None
    assert (left.sense, left.kind) == (-1, 1)
