"""Trainings in many threads of one process, each with optimizers of its own, one after the other.

What goes wrong between threads ends the process, though not each time: half of the runs did.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import Server

SCRIPT = """
import sys
import threading
import torch
from torch import nn

ends = {}


def train(number):
    generator = torch.Generator().manual_seed(number)
    target = torch.randn(1, 8, generator=generator)
    if sys.argv[1] == "modules":
        model = nn.Linear(8, 1, bias=False)
        nn.init.zeros_(model.weight)
        weight = model.weight
    else:
        weight = torch.zeros(1, 8, requires_grad=True)
    for _ in range(5):
        optimizer = torch.optim.Adam([weight], lr=0.05)
        for _ in range(40):
            optimizer.zero_grad()
            loss = ((weight - target) ** 2).mean()
            loss.backward()
            optimizer.step()
    ends[number] = loss.item()


threads = [threading.Thread(target=train, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([ends[number] for number in range(8)])
"""


@pytest.mark.parametrize("how", ["modules", "tensors"])
def test_threads_that_train_models_of_their_own_are_not_disturbed(
    tmp_path: Path, forked: Server, how: str
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    plain = forked.plain(path, how)
    for number in range(3):
        outcome = forked.run(tmp_path / f"runs{number}", path, how, TRAINDBG_STRICT="1")
        assert outcome.code == 0, outcome.stderr
        assert outcome.stdout == plain.stdout
        assert outcome.steps() > 0


POLLS = """
import threading
import time
import torch
from torch import nn
from torch.nn import functional as F


def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        x = torch.randn(32, 8)
        optimizer.zero_grad()
        F.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()


train()
second = threading.Thread(target=train)
second.start()
while second.is_alive():
    time.sleep(0.001)
"""


def test_who_trained_and_polls_for_another_leaves_its_steps_alone(
    tmp_path: Path, forked: Server
) -> None:
    path = tmp_path / "train.py"
    path.write_text(POLLS)
    outcome = forked.run(tmp_path / "runs", path, TRAINDBG_STRICT="1")
    assert outcome.code == 0, outcome.stderr
    assert [f for f in outcome.verdict["findings"] if f["severity"] != "info"] == []
    assert outcome.steps() == 120
