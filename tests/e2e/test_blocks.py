"""What blocks return, and collections that match nothing, of an unchanged script."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from forked import Server
from trainings import PROGRAM, SECONDS, clean_environment

TRAINING = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        return x + torch.relu(self.fc(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1, self.block2, self.head = Block(), Block(), nn.Linear(6, 1)

    def forward(self, x):
        return self.head(self.block2(self.block1(x)))

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(12):
    loss = nn.functional.mse_loss(model(torch.randn(16, 6)), torch.randn(16, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HOOK = {
    "CollectionConfigurations": [
        {
            "CollectionName": "mine",
            "CollectionParameters": {
                "include_regex": "block1_output_0|Net_output_0",
                "save_interval": "3",
            },
        }
    ]
}


def traindbg(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done


def outputs(directory: Path) -> set[str]:
    """The names of the outputs that were recorded."""
    shown = traindbg("show", "run", "--json", "--match", "^output/", directory=directory)
    return {tensor["name"] for tensor in json.loads(shown.stdout)["tensors"]}


def test_a_hook_configuration_of_the_original_has_the_outputs_of_blocks(
    tmp_path: Path, forked: Server
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "hook.json").write_text(json.dumps(HOOK))
    options = ("--rules", "non_finite", "--hook-config", "hook.json")
    command = ("--", *forked.python(), "train.py")
    planned = traindbg("explain-plan", "--json", *options, *command, directory=tmp_path)
    told = json.loads(planned.stdout)
    group = {group["collection"]: group for group in told["groups"]}["block_outputs"]
    assert group["tensors"] == 2
    assert group["bytes"] >= 4 * 16 * (6 + 1), "whole tensors"
    traindbg("run", "--run-dir", "run", *options, *command, directory=tmp_path)
    names = outputs(tmp_path)
    assert {"output/block1", "output/model"} <= names
    assert "output/block2" not in names
    got = traindbg("get", "run", "output/block1", "--stat", "mean", "--json", directory=tmp_path)
    points = json.loads(got.stdout)["workers"][0]["points"]
    assert [point["step"] for point in points] == [0, 3, 6, 9]


def test_a_collection_that_matches_nothing_is_said_once_and_shown(
    tmp_path: Path, forked: Server
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    options = ("--rules", "non_finite", "--every", "2")
    options += ("--collection", "one=^output/blokc1$", "--collection", "two=^gradient/head")
    done = traindbg(
        "run", "--run-dir", "run", *options, "--", *forked.python(), "train.py", directory=tmp_path
    )
    assert done.stderr.count("warning: collection 'one'") == 1, done.stderr
    assert "not seen  collection 'one'" in done.stderr, "the summary"
    assert "near it: output/block1" in done.stderr
    assert "'two'" not in done.stderr
    shown = traindbg("show", "run", directory=tmp_path).stdout
    assert "not seen" in shown
    assert "'one'" in " ".join(shown.split())
    assert "blokc1" in (tmp_path / "run" / "report.html").read_text()
