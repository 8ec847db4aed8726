"""Shared by the Python tests: strict hooks, a run directory per test, the training scripts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import traindbg
from traindbg import _say
from traindbg.hooks.torch.base.compiled import compiler_in_use
from traindbg.hooks.torch.recording import recording as recordings

sys.path.append(str(Path(__file__).parents[1] / "e2e"))
from forked import Server

PACKAGE = Path(traindbg.__file__).parent


def _default_signals() -> None:
    """Undoes what `nohup` and background jobs leave to their children, the tests' programs."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


_default_signals()


@pytest.fixture(autouse=True)
def _clean_process(monkeypatch):
    """Our own exceptions fail a test; every test starts and ends without a recording."""
    monkeypatch.setenv("TRAINDBG_STRICT", "1")
    for name in ("TRAINDBG_RUN_DIR", "TRAINDBG_CONFIG", "TRAINDBG_DEVICE_PATH", "RANK"):
        monkeypatch.delenv(name, raising=False)
    _say._said.clear()
    yield
    if recordings.current is not None:
        recordings.current.close()
    if compiler_in_use():
        torch._dynamo.reset()


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def seeded():
    """Makes every source of random numbers start at the same place."""

    def seed(value: int = 0) -> None:
        random.seed(value)
        np.random.seed(value)
        torch.manual_seed(value)

    return seed


def _runner(tmp_path: Path, command: tuple[str, ...]):
    def run(source: str, *args: str, recorded: Path | None = None, **variables: str):
        script = tmp_path / "script.py"
        script.write_text(source, encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TRAINDBG_")}
        environment |= variables
        if recorded is not None:
            environment["TRAINDBG_RUN_DIR"] = str(recorded)
            environment["PYTHONPATH"] = os.pathsep.join(
                [str(PACKAGE / "_bootstrap"), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
        return subprocess.run(
            [*command, str(script), *args],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=240,
        )

    return run


@pytest.fixture
def python(tmp_path):
    """Runs a script in a process of its own; `recorded` as under `traindbg run`."""
    return _runner(tmp_path, (sys.executable,))


@pytest.fixture(scope="session")
def _server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("forked")) as server:
        yield server


@pytest.fixture
def forked(tmp_path, _server):
    """As `python`, much faster: the process is forked by one that has imported PyTorch."""
    return _runner(tmp_path, _server.python())
