"""How the process ends is listened to while something is recorded; the script keeps its hooks."""

from __future__ import annotations

import sys
import threading

import pytest
import torch

import traindbg as td


@pytest.fixture
def watcher(tmp_path):
    model = torch.nn.Linear(4, 1)
    watcher = td.watch(model, run_dir=tmp_path / "run", rules=[], supervise=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.nn.functional.mse_loss(model(torch.ones(2, 4)), torch.zeros(2, 1)).backward()
    optimizer.step()
    yield watcher
    watcher.detach()


def exceptions(watcher):
    watcher.detach()
    events = td.Run(watcher.run_dir).events
    return [
        (e["data"]["type"], e["data"].get("thread")) for e in events if e["kind"] == "exception"
    ]


def raise_in_thread(error):
    def fail():
        raise error

    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()


def fail_and_leave(code):
    try:
        raise ValueError("dealt with")
    except ValueError:
        sys.exit(code)


@pytest.fixture
def heard(monkeypatch):
    """What a hook of the script's own is given, which was there first."""
    given = []
    monkeypatch.setattr(threading, "excepthook", lambda args: given.append(args.exc_type))
    return given


def test_what_a_thread_raises_is_recorded_and_the_hook_before_is_called(heard, watcher):
    raise_in_thread(ValueError("no"))
    raise_in_thread(SystemExit(3))  # ends that thread alone
    assert heard == [ValueError, SystemExit]
    assert exceptions(watcher) == [("ValueError", "worker")]


def test_all_is_put_back(heard, request):
    before, leave = threading.excepthook, sys.exit
    watcher = request.getfixturevalue("watcher")
    assert threading.excepthook is not before
    assert sys.exit is not leave
    watcher.detach()
    assert threading.excepthook is before
    assert sys.exit is leave


def test_a_hook_that_came_later_stays(heard, watcher, monkeypatch):
    ours, given = threading.excepthook, []

    def later(args):
        given.append(args.exc_type)
        ours(args)

    monkeypatch.setattr(threading, "excepthook", later)
    watcher.detach()
    assert threading.excepthook is later
    raise_in_thread(KeyError("no"))
    assert given == heard == [KeyError]
    assert exceptions(watcher) == []


@pytest.mark.parametrize("code", [None, 0, False])
def test_leaving_well_is_no_exception(watcher, code):
    with pytest.raises(SystemExit) as left:
        fail_and_leave(code)
    assert left.value.code is code
    assert exceptions(watcher) == []


@pytest.mark.parametrize("code", [1, "it failed"])
def test_leaving_while_an_exception_is_dealt_with(watcher, code):
    with pytest.raises(SystemExit) as left:
        fail_and_leave(code)
    assert left.value.code == code
    assert isinstance(left.value.__context__, ValueError)
    assert exceptions(watcher) == [("ValueError", None)]


def test_another_thread_that_leaves_says_nothing_of_the_process(heard, watcher):
    thread = threading.Thread(target=fail_and_leave, args=(1,))
    thread.start()
    thread.join()
    assert heard == [SystemExit]
    assert exceptions(watcher) == []
