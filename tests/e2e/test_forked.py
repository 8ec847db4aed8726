"""Forked trainings are as those in a process of their own, as far as other tests rely on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forked import Server
from trainings import DIGITS, run_training

# What a script can see of its process.
SEEN = """
import json, os, random, signal, sys, threading, warnings
import numpy
import torch

said = {name: os.environ[name] for name in sorted(os.environ) if "RUN_DIR" not in name}
handlers = [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())]
blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
path = sys.path[:1] + sys.path[-2:]
here = [__name__, __file__, sys.modules["__main__"].__file__, os.getcwd(), sys.argv, path]
threads = [torch.get_num_threads(), threading.active_count(), len(os.listdir("/proc/self/task"))]
hooks = [torch.optim.Optimizer.__init__.__module__, torch.is_grad_enabled()]
files = sorted(map(int, os.listdir("/proc/self/fd")))[:3]
print(json.dumps([said, handlers, blocked, here, threads, hooks, files]))
draws = [torch.initial_seed(), torch.rand(1).item(), numpy.random.rand(), random.random()]
print(json.dumps(draws))
"""


POOL = """
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(2)
pool.submit(print, "here").result()
"""
THREADS = """
import threading, time


def first():
    time.sleep(0.2)
    threading.Thread(target=print, args=("here",)).start()


threading.Thread(target=first).start()
"""
LEFT_OPEN = """
file = open(__file__ + ".left", "w")
print("here", file=file)
print("here", flush=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def test_what_is_found_is_what_a_process_of_its_own_finds(forked: Server, tmp_path: Path) -> None:
    outcome = forked.run(tmp_path / "forked", DIGITS, "--fault", "learning_rate")
    own = run_training(tmp_path / "own", DIGITS, "--fault", "learning_rate")
    assert outcome.code == own.code
    assert outcome.stdout == own.stdout
    for part in ("findings", "causes", "rules"):
        assert outcome.verdict[part] == own.verdict[part]
    assert outcome.verdict["findings"]


def test_a_script_sees_what_it_sees_in_a_process_of_its_own(
    forked: Server, tmp_path: Path, script: Path
) -> None:
    script.write_text(SEEN)
    own = run_training(tmp_path / "own", script, "a", "--b", MINE="1").stdout.splitlines()
    first = forked.run(tmp_path / "own", script, "a", "--b", MINE="1").stdout.splitlines()
    again = forked.run(tmp_path / "own", script, "a", "--b", MINE="1").stdout.splitlines()
    assert json.loads(first[0]) == json.loads(own[0])
    for one, other in zip(json.loads(first[1]), json.loads(again[1]), strict=True):
        assert one != other  # nobody has seeded


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import sys; print('here'); sys.exit(3)", 3, ""),
        ("print('here'); raise ValueError('no such thing')", 1, "ValueError: no such thing"),
        (
            "import os; print('here', flush=True); os.kill(os.getpid(), 9)",
            137,
            "killed by signal 9",
        ),
        ("import os; print('here', flush=True); os.kill(os.getpid(), 2)", 130, "KeyboardInterrupt"),
        ("import atexit; atexit.register(print, 'here')", 0, ""),
        (POOL, 0, ""),
        (THREADS, 0, ""),
        ("import sys; print('here'); sys.stdout.flush(); sys.stderr.close()", 0, ""),
        (LEFT_OPEN, 0, ""),
    ],
)
def test_it_ends_as_it_would(
    forked: Server, tmp_path: Path, script: Path, text: str, code: int, said: str
) -> None:
    script.write_text(text)
    outcome = forked.run(tmp_path, script)
    assert outcome.stdout == "here\n"
    assert outcome.code == code
    assert said in outcome.stderr
    if text is LEFT_OPEN:
        assert script.with_name(script.name + ".left").read_text() == "here\n"


def test_one_that_hangs_is_ended_and_what_it_started_too(
    forked: Server, tmp_path: Path, script: Path
) -> None:
    script.write_text("import os, time\nos.fork()\ntime.sleep(1000)\n")
    outcome = run_training(tmp_path, script, python=forked.python(seconds=0.5))
    assert outcome.code == 137
    assert "the training took longer than 0.5 s and was ended" in outcome.stderr
    script.write_text("print('here')")
    assert forked.run(tmp_path / "next", script).stdout == "here\n"


def test_a_server_that_is_not_there_is_said(forked: Server, tmp_path: Path, script: Path) -> None:
    *client, _, seconds = forked.python()
    outcome = run_training(tmp_path, script, python=(*client, str(tmp_path / "none"), seconds))
    assert outcome.code == 1
    assert "the server of forked trainings cannot be asked" in outcome.stderr
