"""`traindbg import`: logs that real programs wrote become runs, and the rules judge them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from forked import Server
from trainings import clean_environment, traindbg, traindbg_json

import traindbg as td

# A small classifier; --lr decides how it ends.
TRAINING = """
import argparse, sys, torch
from torch.utils.tensorboard import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("logs")
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=200)
options = parser.parse_args()
torch.manual_seed(0)
torch.set_num_threads(1)
widths = [8, 32, 32, 32, 32, 2]
layers = []
for below, above in zip(widths, widths[1:]):
    layers += [torch.nn.Linear(below, above), torch.nn.Tanh()]
model = torch.nn.Sequential(*layers[:-1])
optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
inputs = torch.randn(512, 8)
target = inputs @ torch.randn(8, 2)
with SummaryWriter(options.logs) as writer:
    for step in range(options.steps):
        batch = torch.randint(0, 512, (64,))
        loss = torch.nn.functional.mse_loss(model(inputs[batch]), target[batch])
        optimizer.zero_grad()
        loss.backward()
        writer.add_scalar("Loss/train", loss.item(), step)
        writer.add_scalar("lr", options.lr, step)
        if step % 10 == 0:
            for name, parameter in model.named_parameters():
                if parameter.isfinite().all() and parameter.grad.isfinite().all():
                    writer.add_histogram(name, parameter, step)
                    writer.add_histogram(name + ".grad", parameter.grad, step)
        optimizer.step()
"""


def write_log(directory: Path, forked: Server, *options: str) -> Path:
    script = directory / "train.py"
    script.write_text(TRAINING)
    logs = directory / "logs"
    command = [*forked.python(), script, logs, *options]
    subprocess.run(command, check=True, env=clean_environment())
    return logs


@pytest.fixture(scope="module")
def healthy_log(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Path:
    return write_log(tmp_path_factory.mktemp("healthy"), forked)


def fired(run: Path) -> set[str]:
    verdict = traindbg_json("check", run, codes=(0, 1))
    return {f["rule"] for f in verdict["findings"] if f["severity"] != "info"}


def test_a_training_that_diverges_is_found(tmp_path: Path, forked: Server) -> None:
    logs = write_log(tmp_path, forked, "--lr", "8")
    summary = traindbg_json("import", logs, "--to", tmp_path / "run")
    assert summary["problems_in_all"] == 0
    assert fired(tmp_path / "run") & {"non_finite", "exploding_gradient", "loss_not_decreasing"}


def test_its_healthy_twin_stays_silent(healthy_log: Path, tmp_path: Path) -> None:
    summary = traindbg_json("import", healthy_log, "--to", tmp_path / "run")
    assert summary["scalars"] == 400
    assert summary["histograms"] == 20 * 20
    assert fired(tmp_path / "run") == set()
    verdict = traindbg_json("check", tmp_path / "run")
    states = {outcome["rule"]: outcome["state"] for outcome in verdict["rules"]}
    assert states["loss_not_decreasing"] == "clean"
    assert states["vanishing_gradient"] == "clean"
    run = td.Run(tmp_path / "run")
    assert run.is_complete
    assert {"loss", "metric/lr", "weight/0.weight", "gradient/2.bias"} <= set(run.names())
    assert len(run.steps()) == 200


def test_statistics_are_those_of_the_log(healthy_log: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    traindbg_json("import", healthy_log, "--to", tmp_path / "run")
    accumulator = EventAccumulator(str(healthy_log), size_guidance={"histograms": 0})
    accumulator.Reload()
    run = td.Run(tmp_path / "run")
    for tag, name in (("0.weight", "weight/0.weight"), ("2.weight.grad", "gradient/2.weight")):
        for event in accumulator.Histograms(tag):
            proto = event.histogram_value
            got = run.step(event.step).tensors[name].statistics
            assert got.count == proto.num
            assert got.min == pytest.approx(proto.min, rel=1e-6)
            assert got.max == pytest.approx(proto.max, rel=1e-6)
            assert got.mean == pytest.approx(proto.sum / proto.num, rel=1e-5, abs=1e-9)
            assert got.l2 == pytest.approx(proto.sum_squares**0.5, rel=1e-5)


def test_a_log_that_tensorboards_own_writer_made(tmp_path: Path) -> None:
    """Scalars and histograms in the tensor form, with metadata on the first value only."""
    import numpy as np
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.histogram import metadata as histogram_metadata
    from tensorboard.plugins.scalar import metadata as scalar_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util

    for mode in ("train", "validation"):
        writer = EventFileWriter(str(tmp_path / "logs" / mode))
        for step in range(5):
            loss = Summary.Value(
                tag="epoch_loss", tensor=tensor_util.make_tensor_proto(np.float32(5 - step))
            )
            table = np.array([[-1.0, 0.0, 3], [0.0, 1.0, 5]])
            bins = Summary.Value(
                tag="dense/kernel_0/histogram", tensor=tensor_util.make_tensor_proto(table)
            )
            if step == 0:
                loss.metadata.CopyFrom(scalar_metadata.create_summary_metadata("", ""))
                bins.metadata.CopyFrom(histogram_metadata.create_summary_metadata("", ""))
            writer.add_event(
                Event(step=step, wall_time=1e9 + step, summary=Summary(value=[loss, bins]))
            )
        writer.close()
    summary = traindbg_json("import", tmp_path / "logs", "--to", tmp_path / "run")
    assert summary["scalars"] == 10
    assert summary["histograms"] == 10
    run = td.Run(tmp_path / "run")
    assert run["epoch_loss"].values("value", "train").tolist() == [5, 4, 3, 2, 1]
    assert run["epoch_loss"].values("value", "eval").tolist() == [5, 4, 3, 2, 1]
    assert run.tensor("epoch_loss").role == "loss"
    assert run["weight/dense/kernel_0"].values("count").tolist() == [8] * 5


def test_a_damaged_log(healthy_log: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (source,) = [entry for entry in healthy_log.iterdir() if "tfevents" in entry.name]
    content = bytearray(source.read_bytes())
    content[len(content) // 2] ^= 0x10
    (logs / source.name).write_bytes(content[:-7])
    done = traindbg("import", logs, "--to", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["problems_in_all"] == 2
    assert [problem["tail"] for problem in summary["problems"]] == [False, True]
    assert source.name in done.stderr
    assert f"offset {summary['problems'][0]['offset']}" in done.stderr
    assert summary["scalars"] >= 398
    assert len(td.Run(tmp_path / "run").steps()) >= 199


def test_there_and_back(healthy_log: Path, tmp_path: Path) -> None:
    traindbg_json("import", healthy_log, "--to", tmp_path / "run")
    traindbg_json("export", tmp_path / "run", "--format", "tensorboard", "--to", tmp_path / "logs")
    traindbg_json("import", tmp_path / "logs", "--to", tmp_path / "again")
    first, second = td.Run(tmp_path / "run"), td.Run(tmp_path / "again")
    assert first.scalars("loss").values.tolist() == second.scalars("loss").values.tolist()
    for name in ("weight/0.weight", "gradient/2.weight"):
        one, two = first[name].values("l2"), second[name].values("l2")
        assert one == pytest.approx(two, rel=1e-5)


def test_roles_can_be_chosen(healthy_log: Path, tmp_path: Path) -> None:
    done = traindbg(
        "import", healthy_log, "--to", tmp_path / "run", "--map", "^lr$=loss",
        "--map", r"\.grad$=ignore",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = td.Run(tmp_path / "run")
    assert run.tensor("lr").role == "loss"
    assert not [name for name in run.names() if "gradient" in name]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--to", "{run}", "--map", "x"], "REGEX=ROLE"),
        (["--to", "{run}", "--map", "x=losss"], "loss"),
        (["--to", "{run}", "--map", "(=loss"], "regular expression"),
        ([], "--to"),
        (["--to", "{run}/../bad name"], "letters"),
    ],
)
def test_mistakes_say_what_to_do(
    healthy_log: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    run = str(tmp_path / "run")
    done = traindbg("import", healthy_log, *[option.format(run=run) for option in options])
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_and_a_run_that_is_there(healthy_log: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = traindbg("import", tmp_path / "empty", "--to", tmp_path / "run")
    assert done.returncode == 2
    assert "no event files" in done.stderr
    assert traindbg("import", healthy_log, "--to", tmp_path / "run").returncode == 0
    done = traindbg("import", healthy_log, "--to", tmp_path / "run")
    assert done.returncode == 2
    assert "exists already" in done.stderr
