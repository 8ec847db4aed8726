"""Which lines of its own code a training is said to have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

import traindbg as td
from traindbg.hooks.torch.base import sources as program_sources

PROGRAM = """\
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):  # the class
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())  # body
        self.head = nn.Linear(8, 3)  # head

    def forward(self, x):
        return self.head(self.body(x))

x, y = torch.randn(32, 4), torch.randint(3, (32,))
train = DataLoader(TensorDataset(x, y), 8, shuffle=True)  # loader
held_out = DataLoader(TensorDataset(x, y), 16)  # evaluation_loader

def loss_of(logits, labels):
    return F.cross_entropy(logits, labels)  # loss

def validate(model):
    model.eval()  # eval
    with torch.no_grad():
        for a, b in held_out:  # evaluation_loop
            loss_of(model(a), b)
    model.train()

model = Net()
optimizer = torch.optim.SGD(  # optimizer
    model.parameters(),
    lr=0.1,
)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)  # schedule
for epoch in range(2):
    for a, b in train:  # loop
        optimizer.zero_grad()
        loss = loss_of(model(a), b)
        loss.backward()  # backward
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # clip
        optimizer.step()  # step
    schedule.step()  # schedule_step
    validate(model)
"""


def line_of(program: str, mark: str) -> int:
    (number,) = (
        number for number, line in enumerate(program.splitlines(), 1) if line.endswith(f"# {mark}")
    )
    return number


def lines_of(run_dir: Path) -> dict[str, tuple[str, int, str]]:
    sources = td.Run(run_dir).worker_meta()["sources"]
    return {
        each["what"]: (each["file"], each["line"], each.get("function", "")) for each in sources
    }


def run_watched(directory: Path, name: str, *words: str, **environment: str) -> Path:
    """Runs a program as `traindbg run` does; the directory of its run."""
    run_dir = directory / "run"
    bootstrap = Path(td.__file__).parent / "_bootstrap"
    path = os.pathsep.join([str(bootstrap), str(Path(td.__file__).parents[1])])
    if "PYTHONPATH" in environment:
        path += os.pathsep + environment.pop("PYTHONPATH")
    done = subprocess.run(
        [sys.executable, *words, name],
        cwd=directory,
        env=os.environ | environment | {"PYTHONPATH": path, "TRAINDBG_RUN_DIR": str(run_dir)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return run_dir


def test_every_moment_of_an_ordinary_training_has_its_line(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    lines = lines_of(run_watched(tmp_path, "train.py"))
    for what in (
        *("optimizer", "step", "backward", "loader", "loop", "clip", "schedule", "schedule_step"),
        *("evaluation_loader", "evaluation_loop", "eval"),
    ):
        assert lines[what][:2] == ("train.py", line_of(PROGRAM, what)), what
    assert lines["loss/cross_entropy"] == ("train.py", line_of(PROGRAM, "loss"), "loss_of")
    assert lines["evaluation/cross_entropy"][1] == line_of(PROGRAM, "loss")
    assert lines["module/head"][1] == line_of(PROGRAM, "head")
    assert lines["module/body.0"][1] == line_of(PROGRAM, "body")
    assert lines["module/head"][2].endswith("__init__")
    assert lines["model"][1] == line_of(PROGRAM, "the class")


def test_a_training_inside_of_a_package_has_lines_of_the_package(tmp_path):
    package = tmp_path / "lib" / "site-packages" / "trainers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(PROGRAM)
    lines = lines_of(run_watched(tmp_path, "trainers", "-m", PYTHONPATH=str(package.parent)))
    assert lines["step"][:2] == (
        "lib/site-packages/trainers/__main__.py",
        line_of(PROGRAM, "step"),
    )


def test_a_trainer_of_a_library_is_called_from_a_line_of_the_user(tmp_path):
    package = tmp_path / "lib" / "site-packages"
    package.mkdir(parents=True)
    (package / "fitting.py").write_text(
        "from torch.nn import functional as F\n"
        "def fit(model, optimizer, x, y):\n"
        "    F.mse_loss(model(x), y).backward()\n"
        "    optimizer.step()\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch, fitting\n"
        "model = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "fitting.fit(model, optimizer, torch.ones(2, 4), torch.ones(2, 1))\n"
    )
    lines = lines_of(run_watched(tmp_path, "train.py", PYTHONPATH=str(package)))
    assert lines["backward"] == lines["step"] == ("train.py", 4, "")
    assert lines["optimizer"] == ("train.py", 3, "")
    assert "model" not in lines  # its class is PyTorch's


def test_a_program_that_goes_to_another_directory_is_named_from_where_it_was_started(tmp_path):
    (tmp_path / "train.py").write_text("import os, torch\nos.chdir('/')\n" + PROGRAM)
    lines = lines_of(run_watched(tmp_path, "train.py"))
    assert lines["step"][:2] == ("train.py", line_of(PROGRAM, "step") + 2)


def test_what_was_made_before_the_watch_has_no_line(run_dir):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for _ in range(2):
        nn.functional.mse_loss(model(torch.ones(2, 4)), torch.ones(2, 1)).backward()
        optimizer.step()
    watcher.detach()
    lines = lines_of(run_dir)
    assert "optimizer" not in lines
    file, _, function = lines["step"]
    assert file.endswith("test_torch_sources.py")
    assert function == "test_what_was_made_before_the_watch_has_no_line"


def test_code_without_a_file_has_no_line(run_dir):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    step = "nn.functional.mse_loss(model(torch.ones(2, 4)), torch.ones(2, 1)).backward()"
    cell = compile(step, "/tmp/ipykernel_1/2.py", "exec")

    def inner():
        exec(cell, {"nn": nn, "torch": torch, "model": model})

    inner()
    optimizer.step()
    watcher.detach()
    # The cell has no file, so the nearest line that has one is where it is called.
    assert lines_of(run_dir)["backward"][2].endswith("inner")


def test_a_second_training_has_lines_of_its_own(run_dir, tmp_path):
    def train(directory):
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watcher = td.watch(model, optimizer, run_dir=directory, supervise=False)
        yield model, optimizer
        watcher.detach()

    for model, optimizer in train(run_dir):
        nn.functional.mse_loss(model(torch.ones(2, 4)), torch.ones(2, 1)).backward()
        optimizer.step()
    for model, optimizer in train(tmp_path / "other"):
        nn.functional.l1_loss(model(torch.ones(2, 4)), torch.ones(2, 1)).backward()
        optimizer.step()
    first, other = lines_of(run_dir), lines_of(tmp_path / "other")
    assert other["step"][1] == first["step"][1] + 3
    assert "loss/mse_loss" not in other


def test_nothing_is_kept_alive_and_nothing_noted_while_nobody_records():
    sources = program_sources.Sources()
    sources.note("step")
    assert sources.described([]) == []
    module = nn.Linear(1, 1)
    sources.registered(module)
    sources.made(module)
    assert len(sources._modules) == len(sources._made) == 1
    del module
    assert len(sources._modules) == len(sources._made) == 0


def test_a_loader_that_cannot_be_a_key_is_left_alone(run_dir):
    class Equal(torch.utils.data.DataLoader):
        def __eq__(self, other):
            return True

        __hash__ = None

    model = nn.Linear(1, 1)
    watcher = td.watch(model, supervise=False, run_dir=run_dir)
    for (x,) in Equal(torch.utils.data.TensorDataset(torch.zeros(4, 1))):
        model(x)
    watcher.detach()
    assert "loader" not in lines_of(run_dir)


def test_what_is_noted_late_takes_nothing_back(tmp_path):
    """The optimizers are gone when the last evaluation comes."""
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "from torch.nn import functional as F\n"
        "x, y = torch.ones(4, 2), torch.ones(4, 1)\n"
        "def train(models):\n"
        "    optimizers = [torch.optim.Adam(model.parameters()) for model in models]\n"
        "    for _ in range(3):\n"
        "        for model, optimizer in zip(models, optimizers):\n"
        "            optimizer.zero_grad()\n"
        "            F.mse_loss(model(x), y).backward()\n"
        "            optimizer.step()\n"
        "models = [torch.nn.Linear(2, 1) for _ in range(2)]\n"
        "train(models)\n"
        "with torch.no_grad():\n"
        "    F.l1_loss(models[0](x), y)\n"
    )
    run_dir = run_watched(tmp_path, "train.py")
    assert lines_of(run_dir)["evaluation/l1_loss"][1] == 14
    meta = td.Run(run_dir).worker_meta()
    assert [each["type"] for each in meta["optimizers"]] == ["Adam", "Adam"]
    assert meta["model_type"] == "Linear"
