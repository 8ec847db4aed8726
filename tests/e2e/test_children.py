"""Processes that a recorded training starts, in whatever way, leave its record and files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import Server
from trainings import run_training

import traindbg as td

SCRIPT = """
import multiprocessing
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.full((4,), float(index) / 24)


def compute_and_leave(code):
    # Uses torch as a training does, but for an optimizer, and leaves without any clean-up.
    model = torch.nn.Linear(4, 1)
    model(torch.ones(2, 4)).mean().backward()
    os._exit(code)


def main():
    method = sys.argv[1]
    context = multiprocessing.get_context(method)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Numbers(), batch_size=3, num_workers=1, multiprocessing_context=method)
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        print("loss", loss.item(), flush=True)
        if step == 2:
            child = context.Process(target=compute_and_leave, args=(7,))
            child.start()
            child.join()
            print("child", child.exitcode, flush=True)
    child = subprocess.run([sys.executable, "-c", "import os, torch; os._exit(9)"])
    print("program", child.returncode, flush=True)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_leave_the_record_alone(method: str, tmp_path: Path, forked: Server) -> None:
    script = tmp_path / "children.py"
    script.write_text(SCRIPT)
    plain = forked.plain(script, method)
    assert plain.returncode == 0, plain.stderr
    start = run_training if method == "spawn" else forked.run
    outcome = start(tmp_path / "runs", script, method)
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == plain.stdout
    assert outcome.stdout.count("child 7") == 1
    assert "program 9" in outcome.stdout

    run = td.Run(outcome.run)
    assert run.workers == [0]
    assert run.steps().tolist() == list(range(8))
    assert run.is_complete
    assert not run.verify()
