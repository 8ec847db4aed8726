"""traindbg in the kernel of a notebook."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from trainings import clean_environment, traindbg

import traindbg as td

SETUP = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
X, Y = torch.randn(256, 20), torch.randint(0, 3, (256,))


def make():
    return nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))


def train(model, steps, rate=0.1, stop_at=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for step in range(steps):
        at = step * 16 % 240
        loss = F.cross_entropy(model(X[at : at + 16]), Y[at : at + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if stop_at == step:
            raise KeyboardInterrupt
"""
RESTART = "restart the kernel"


def execute(cells: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The cells as they are after a kernel of their own has run them; one cell may restart it."""
    for name, value in clean_environment(TRAINDBG_RUNS=str(folder), IPYTHONDIR=str(folder)).items():
        monkeypatch.setenv(name, value)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        book,
        allow_errors=True,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    with client.setup_kernel():
        for index, cell in enumerate(book.cells):
            if cell.source == RESTART:
                run_sync(client.km.restart_kernel)(now=False)
                run_sync(client.kc.wait_for_ready)(timeout=120)
            else:
                client.execute_cell(cell, index)
    return book.cells


def said(cell: Any) -> str:
    """All that a cell printed, on either stream."""
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def shown(cell: Any, kind: str = "text/plain") -> str:
    return next(output.data[kind] for output in cell.outputs if "data" in output)


def raised(cell: Any) -> list[str]:
    return [output.ename for output in cell.outputs if output.output_type == "error"]


def exceptions(run: td.Run) -> list[tuple[str, int]]:
    data = [event["data"] for event in run.events if event["kind"] == "exception"]
    return [(error["type"], error["step"]) for error in data]


def test_each_training_is_a_run(tmp_path, monkeypatch) -> None:
    cells = execute(
        [
            SETUP,
            "import traindbg as td\nmodel = make()\nwatcher = td.watch(model)",
            "train(model, 20)",
            "watcher",
            "second = make()\nwatcher = td.watch(second)\ntrain(second, 30, stop_at=10)",
            "train(second, 5)",
            "1 / 0",
            "td.runs(watcher.run_dir.parent)[-1]",
            "watcher.detach()\nthird = make()\nwatcher = td.watch(third)\ntrain(third, 4)",
            RESTART,
            SETUP + "import traindbg as td\nmodel = make()\ntd.watch(model)\ntrain(model, 3)",
        ],
        tmp_path,
        monkeypatch,
    )
    assert [raised(cell) for cell in cells if raised(cell)] == [
        ["KeyboardInterrupt"],
        ["ZeroDivisionError"],
    ]
    assert all(said(cell) == "" for cell in cells)
    assert "recording into" in shown(cells[3])
    assert "20 train" in shown(cells[3], "text/html")
    assert "16 train steps" in shown(cells[7])
    runs = td.runs(tmp_path)
    assert [run.steps().size for run in runs] == [20, 16, 4, 3]
    assert all("notebook" in run.name for run in runs)
    assert [exceptions(run) for run in runs] == [[], [("KeyboardInterrupt", 11)], [], []]
    # The optimizer that was interrupted is alive in a traceback; the second training went on alone.
    assert len(runs[1].worker_meta()["optimizers"]) == 1
    for run in runs:
        assert run.is_complete
        assert not run.verify()


def test_findings_are_said_when_a_cell_ends(tmp_path, monkeypatch) -> None:
    waits = (
        "import time\n"
        "deadline = time.monotonic() + 60\n"
        "while not td.Run(watcher.run_dir).findings and time.monotonic() < deadline:\n"
        "    time.sleep(0.1)\n"
        "train(model, 1, rate=0.)"
    )
    cells = execute(
        [
            SETUP,
            "import traindbg as td\nmodel = make()\nwatcher = td.watch(model)",
            "train(model, 40, rate=200.)",
            waits,
            "print('next')",
            "watcher",
        ],
        tmp_path,
        monkeypatch,
    )
    lines = (said(cells[2]) + said(cells[3])).splitlines()
    assert lines
    assert all(line.startswith("traindbg: error: ") for line in lines), lines
    assert any("exploding_gradient, step" in line for line in lines), lines
    assert "exploding_gradient" in shown(cells[5], "text/html")
    [run] = td.runs(tmp_path)
    assert len(lines) <= len(run.findings)


def waits_for(*runs: str) -> str:
    """A cell that waits until something is found in each of these runs."""
    return (
        "import time\n"
        "deadline = time.monotonic() + 60\n"
        f"for run_dir in ({', '.join(runs)},):\n"
        "    while not td.Run(run_dir).findings and time.monotonic() < deadline:\n"
        "        time.sleep(0.1)"
    )


def test_findings_of_runs_that_were_closed_are_said(tmp_path, monkeypatch) -> None:
    bad = "train(model, 40, rate=200.)"
    cells = execute(
        [
            SETUP + "import traindbg as td",
            f"model = make()\nwith td.watch(model, run_dir='left') as left:\n    {bad}",
            waits_for("left.run_dir"),
            f"model = make()\nfirst = td.watch(model)\n{bad}\n"
            "model = make()\nsecond = td.watch(model)\ntrain(model, 1, rate=0.)",
            waits_for("first.run_dir"),
            "from traindbg.hooks import notebook\n"
            "for child in notebook._runs.values():\n"
            "    if child.args[2] != str(second.run_dir):\n"
            "        child.wait()",
            "list(notebook._runs) == [str(second.run_dir)]",
        ],
        tmp_path,
        monkeypatch,
    )
    assert [raised(cell) for cell in cells if raised(cell)] == []
    assert "exploding_gradient, step" in said(cells[1]) + said(cells[2])
    assert "exploding_gradient, step" in said(cells[3]) + said(cells[4])
    lines = "".join(said(cell) for cell in cells).splitlines()
    assert all(line.startswith("traindbg: ") for line in lines), lines
    assert len(lines) == len(td.Run(tmp_path / "left").findings) + sum(
        len(run.findings) for run in td.runs(tmp_path) if run.name != "left"
    )
    assert shown(cells[6]) == "True"


def test_zero_code_records_what_a_kernel_trains(tmp_path) -> None:
    notebook = tmp_path / "digits.ipynb"
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(cell)
            for cell in (SETUP, "model = make()\ntrain(model, 12)", "train(make(), 6)")
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}},
    )
    nbformat.write(book, notebook)
    script = tmp_path / "execute.py"
    script.write_text(
        "import nbformat, sys\n"
        "from nbclient import NotebookClient\n"
        "book = nbformat.read(sys.argv[1], as_version=4)\n"
        "NotebookClient(book, timeout=120).execute()\n"
        "nbformat.write(book, sys.argv[1])\n"
    )
    options = ("--quiet", "--run-dir", tmp_path / "run")
    done = traindbg(
        *("run", *options, "--", sys.executable, script, notebook), IPYTHONDIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    run = td.Run(tmp_path / "run")
    assert run.workers == [0]
    assert run.steps().tolist() == list(range(18))
    assert run.is_complete
    assert exceptions(run) == []
    cells = json.loads(notebook.read_text())["cells"]
    assert [cell["outputs"] for cell in cells] == [[], [], []]
