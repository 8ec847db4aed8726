"""`traindbg export`: each format, read back by the library that it is for."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch
from forked import Server
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.util import tensor_util
from trainings import PROGRAM, clean_environment, traindbg, traindbg_json

import traindbg as td

TRAINING = """
import sys, torch, traindbg as td
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
half = torch.nn.Linear(8, 4).bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = torch.nn.CrossEntropyLoss()
with td.watch(
    model, optimizer, run_dir=sys.argv[1], collect=("weights", "gradients"), raw="weights",
    histograms=("weights", "gradients"), every=2, supervise=False,
):
    for step in range(10):
        inputs = torch.randn(32, 8)
        optimizer.zero_grad()
        loss_fn(model(inputs), (inputs.sum(1) > 0).long()).backward()
        td.log('odd, "name"', float("nan") if step == 3 else step)
        optimizer.step()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Path:
    directory = tmp_path_factory.mktemp("export")
    script = directory / "train.py"
    script.write_text(TRAINING)
    command = [*forked.python(), script, directory / "run"]
    subprocess.run(command, check=True, env=clean_environment())
    return directory / "run"


def export(run: Path, *options: object) -> str:
    done = traindbg("export", run, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_csv_is_read_by_pythons_own_reader(run: Path) -> None:
    text = export(run, "--format", "csv", "--to", "-")
    assert text.count("\n") > 10
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    odd = [row for row in rows if row["name"] == 'metric/odd, "name"']
    assert [float(row["value"]) for row in odd if row["step"] != "3"] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert next(row["value"] for row in odd if row["step"] == "3") == "nan"
    loss = [float(row["value"]) for row in rows if row["name"] == "loss"]
    assert loss == td.Run(run).scalars("loss").values.tolist()


def test_csv_has_the_line_ends_of_the_standard(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    export(run, "--format", "csv", "--table", "steps", "--to", path)
    content = path.read_bytes()
    assert content.endswith(b"\r\n")
    assert content.count(b"\r\n") == content.count(b"\n") == 11


def test_json_lines(run: Path) -> None:
    rows = [
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
        for line in export(run, "--format", "jsonl", "--to", "-").splitlines()
    ]
    odd = {row["step"]: row["value"] for row in rows if row["name"] == 'metric/odd, "name"'}
    assert odd[3] == "nan"
    assert odd[4] == 4
    tensors = export(run, "--format", "jsonl", "--table", "tensors", "--to", "-").splitlines()
    shapes = {row["name"]: row["shape"] for row in map(json.loads, tensors)}
    assert shapes["weight/0.weight"] == [16, 8]


def test_parquet(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    summary = traindbg_json(
        "export", run, "--format", "parquet", "--table", "statistics",
        "--name", r"^(weight|gradient)/.*\.weight$", "--statistic", "l2,nan", "--to", path,
    )  # fmt: skip
    table = pq.read_table(path)
    assert table.num_rows == summary["items"] > 0
    assert table.column_names[-2:] == ["l2", "nan"]
    assert set(table["name"].to_pylist()) == {
        "weight/0.weight", "weight/2.weight", "gradient/0.weight", "gradient/2.weight",
    }  # fmt: skip


def test_npz_has_the_whole_tensors(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    export(run, "--format", "npz", "--name", "0.weight", "--to", path)
    reader = td.Run(run)["weight/0.weight"]
    with np.load(path) as arrays:
        assert len(arrays.files) == len(reader.raw_steps())
        for step in reader.raw_steps():
            np.testing.assert_array_equal(
                arrays[f"train/{step}/weight/0.weight"], reader.value(int(step))
            )
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def test_npz_has_series(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "series.npz"
    export(run, "--format", "npz", "--table", "scalars,statistics", "--to", path)
    reader = td.Run(run)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(arrays["train/loss/value"], reader.scalars("loss").values)
        l2 = reader["weight/2.weight"].series("l2")
        np.testing.assert_array_equal(arrays["train/weight/2.weight/l2"], l2.values)
        np.testing.assert_array_equal(arrays["train/weight/2.weight/step"], l2.steps)


def test_safetensors_of_one_step_are_weights(run: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.safetensors"
    export(run, "--format", "safetensors", "--steps", "4", "--to", one)
    tensors = safetensors.torch.load_file(one)
    reader = td.Run(run)
    assert set(tensors) == {"weight/0.weight", "weight/2.weight"}
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor.numpy(), reader[name].value(4))
    every = tmp_path / "every.safetensors"
    export(run, "--format", "safetensors", "--to", every)
    assert len(safetensors.torch.load_file(every)) == 2 * len(reader["weight/0.weight"].raw_steps())


FLOAT8 = """
import sys, torch, traindbg as td
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with td.watch(model, run_dir=sys.argv[1], rules=[], raw="other", supervise=False):
    for name in sys.argv[2:]:
        td.save(name, torch.arange(256, dtype=torch.uint8).view(getattr(torch, name)))
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""
FLOAT8_NAMES = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)


def test_floats_of_8_bits_keep_their_values(tmp_path: Path, forked: Server) -> None:
    names = [name for name in FLOAT8_NAMES if hasattr(torch, name)]
    run = tmp_path / "run"
    script = tmp_path / "train.py"
    script.write_text(FLOAT8)
    command = [*forked.python(), script, run, *names]
    subprocess.run(command, check=True, env=clean_environment())
    export(run, "--format", "npz", "--to", tmp_path / "float8.npz")
    export(run, "--format", "safetensors", "--steps", "0", "--to", tmp_path / "float8.safetensors")
    tensors = safetensors.torch.load_file(tmp_path / "float8.safetensors")
    with np.load(tmp_path / "float8.npz") as arrays:
        for name in names:
            every = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
            as_float32 = arrays[f"train/0/custom/{name}"]
            np.testing.assert_array_equal(as_float32, every.to(torch.float32).numpy())
            assert tensors[f"custom/{name}"].dtype == every.dtype
            assert torch.equal(tensors[f"custom/{name}"].view(torch.uint8), every.view(torch.uint8))


def accumulated(path: Path) -> EventAccumulator:
    accumulator = EventAccumulator(
        str(path), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0}
    )
    accumulator.Reload()
    return accumulator


def test_the_real_tensorboard_loads_what_was_exported(run: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    export(run, "--format", "tensorboard", "--to", logs)
    reader = td.Run(run)
    seen = accumulated(logs / "train")
    events = seen.Scalars("loss")
    loss = reader.scalars("loss")
    assert [event.step for event in events] == loss.steps.tolist()
    np.testing.assert_allclose([event.value for event in events], loss.values, rtol=1e-6)
    steps = [s.wall_nanos for s in reader.iter_steps()]
    np.testing.assert_allclose([event.wall_time for event in events], np.array(steps) * 1e-9)
    l2 = reader["weight/0.weight"].series("l2")
    np.testing.assert_allclose(
        [event.value for event in seen.Scalars("weight/0.weight/l2")], l2.values, rtol=1e-6
    )
    histogram = seen.Histograms("gradient/0.weight")[0]
    assert histogram.histogram_value.num == 8 * 16
    assert sum(histogram.histogram_value.bucket) == 8 * 16
    limits = histogram.histogram_value.bucket_limit
    assert list(limits) == sorted(set(limits))
    statistics = reader.step(histogram.step).tensors["gradient/0.weight"].statistics
    assert histogram.histogram_value.min == pytest.approx(statistics.min)
    assert histogram.histogram_value.max == pytest.approx(statistics.max)


def test_what_the_web_page_reads_has_every_tag(run: Path, tmp_path: Path) -> None:
    """The page gets everything as tensors, through another loader."""
    logs = tmp_path / "logs"
    export(run, "--format", "tensorboard", "--to", logs)
    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(logs))
    multiplexer.Reload()
    assert list(multiplexer.Runs()) == ["train"]
    by_plugin = {
        name: set(multiplexer.PluginRunToTagToContent(name)["train"])
        for name in ("scalars", "histograms")
    }
    assert {"loss", "weight/0.weight/l2"} <= by_plugin["scalars"]
    assert {"weight/0.weight", "gradient/2.weight"} <= by_plugin["histograms"]
    event = multiplexer.Tensors("train", "gradient/0.weight")[0]
    table = tensor_util.make_ndarray(event.tensor_proto)
    assert table.shape[1] == 3
    assert table[:, 2].sum() == 8 * 16


def test_nothing_is_overwritten_without_force(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("mine")
    done = traindbg("export", run, "--format", "csv", "--to", path)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert path.read_text() == "mine"
    export(run, "--format", "csv", "--force", "--to", path)
    assert path.read_text() != "mine"
    logs = tmp_path / "logs"
    export(run, "--format", "tensorboard", "--to", logs)
    assert traindbg("export", run, "--format", "tensorboard", "--to", logs).returncode == 2
    export(run, "--format", "tensorboard", "--force", "--to", logs)
    (logs / "thesis.tex").write_text("mine")
    done = traindbg("export", run, "--format", "tensorboard", "--force", "--to", logs)
    assert done.returncode == 2
    assert "thesis.tex" in done.stderr
    assert (logs / "thesis.tex").read_text() == "mine"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["logs", "run.csv"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--format", "csv"], "--to"),
        (["--to", "x.csv"], "--format"),
        (["--format", "cvs", "--to", "x"], "csv"),
        (["--format", "npz", "--to", "-"], "standard output"),
        (["--format", "csv", "--to", "x", "--table", "scalar"], "scalars"),
        (["--format", "csv", "--to", "x", "--table", "scalars,steps"], "one table"),
        (["--format", "csv", "--to", "x", "--name", "("], "regular expression"),
        (["--format", "csv", "--to", "x", "--steps", "a"], "--steps"),
        (["--format", "csv", "--to", "x", "--worker", "9"], "worker 9"),
        (["--format", "csv", "--to", "x", "--collection", "weihgts"], "weights"),
        (["--format", "csv", "--to", "-", "--json"], "choose one"),
        (["--format", "npz", "--to", "x", "--name", "no such"], "--raw"),
        (["--format", "csv", "--to", "/no/such/place/x"], "/no/such/place"),
    ],
)
def test_mistakes_say_what_to_do(run: Path, tmp_path: Path, options: list[str], words: str) -> None:
    done = subprocess.run(
        [PROGRAM, "export", run, *options],
        capture_output=True, text=True, cwd=tmp_path, env=clean_environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_it_says_what_to_install(run: Path, tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('not here')")
    done = traindbg(
        "export", run, "--format", "parquet", "--to", tmp_path / "x.parquet",
        PYTHONPATH=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install pyarrow" in done.stderr


def test_a_full_disk_leaves_nothing(run: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "export", run, "--format", "csv", "--to", "-"],
        stdout=os.open("/dev/full", os.O_WRONLY), stderr=subprocess.PIPE, text=True,
        env=clean_environment(), check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "standard output" in done.stderr


def test_long_work_shows_how_far_it_is(tmp_path: Path) -> None:
    """On a terminal, after half a second: here of waiting for a pipe to be emptied."""
    long_run = tmp_path / "long"
    logs = tmp_path / "logs"
    write_many(logs)
    assert traindbg("import", logs, "--to", long_run).returncode == 0
    main, theirs = pty.openpty()
    with subprocess.Popen(
        [PROGRAM, "export", long_run, "--format", "jsonl", "--to", "-"],
        stdout=subprocess.PIPE, stderr=theirs, env=clean_environment(),
    ) as process:  # fmt: skip
        os.close(theirs)
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]  # it has begun and waits for us
        time.sleep(0.6)
        rows = process.stdout.read().count(b"\n")
        assert process.wait() == 0
    shown = os.read(main, 65536)
    os.close(main)
    assert rows == 120_000
    assert b"exporting: " in shown
    assert b" of 30000 steps)" in shown


def write_many(logs: Path) -> None:
    """Several batches, and more than a pipe holds."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(logs)) as writer:
        for step in range(30_000):
            for name in "abcd":
                writer.add_scalar(name, step, step)


def test_the_summary(run: Path, tmp_path: Path) -> None:
    summary = traindbg_json("export", run, "--format", "csv", "--to", tmp_path / "x.csv")
    assert summary["schema_version"] == 1
    assert summary["format"] == "csv"
    assert summary["bytes"] == (tmp_path / "x.csv").stat().st_size
    assert summary["items"] == (tmp_path / "x.csv").read_text().count("\n") - 1


def test_the_examples_of_the_document(run: Path, tmp_path: Path) -> None:
    """Every command and every piece of Python in docs/export.md does what it says."""
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
    blocks = re.findall(r"```(\w+)\n(.*?)```", text, flags=re.DOTALL)
    shutil.copytree(run, tmp_path / "run")
    program = "import traindbg as td\n" + "".join(code for kind, code in blocks if kind == "python")
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert (tmp_path / "gradients.parquet").is_file()
    commands = [line for kind, code in blocks if kind == "sh" for line in code.splitlines()]
    assert len(commands) >= 9
    for command in commands:
        done = subprocess.run(
            [PROGRAM, *shlex.split(command)[1:]],
            capture_output=True, text=True, cwd=tmp_path, env=clean_environment(), check=False,
        )  # fmt: skip
        assert done.returncode in ((0, 1) if " check " in command else (0,)), command + done.stderr
    made = {"scalars.csv", "statistics.parquet", "weights.npz", "series.npz", "step4.safetensors"}
    assert made | {"logs"} <= {entry.name for entry in tmp_path.iterdir()}
