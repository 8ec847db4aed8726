"""Fixtures of the end-to-end tests; trainings.py has the helpers."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest
from forked import Server
from trainings import DIGITS, Outcome


def _default_signals() -> None:
    """Undoes what `nohup` and background jobs leave to their children, the tests' programs."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


_default_signals()


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Trainings for tests of what is found, much faster; see forked.py."""
    with Server(tmp_path_factory.mktemp("forked")) as server:
        yield server


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Outcome:
    """The healthy digits training, run once; nobody may change its files."""
    return forked.run(tmp_path_factory.mktemp("healthy"), DIGITS)


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Outcome:
    """The digits training with a learning rate that is too high, run once; for `watched`."""
    runs = tmp_path_factory.mktemp("faulty")
    outcome = forked.run(runs, DIGITS, "--fault", "learning_rate")
    assert outcome.code == 0, outcome.stderr
    return outcome
