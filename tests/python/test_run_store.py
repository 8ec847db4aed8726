"""Reading what a run keeps as a whole: one array, no copy, waiting, verifying."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import traindbg as td

RECORD = """
import sys, time
import torch
import traindbg as td

directory, steps, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
td.watch(model, run_dir=directory, raw=("weights",), every=4, supervise=False)
for step in range(steps):
    optimizer.zero_grad()
    loss = model(torch.ones(3, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if pause:
        print(step, flush=True)
        time.sleep(pause)
"""


@pytest.fixture(scope="module", name="run")
def _run(tmp_path_factory: pytest.TempPathFactory) -> td.Run:
    directory = tmp_path_factory.mktemp("store") / "run"
    subprocess.run([sys.executable, "-c", RECORD, directory, "40", "0"], check=True, timeout=120)
    return td.Run(directory)


def test_all_values_as_one_array_are_the_values_one_by_one(run: td.Run) -> None:
    tensor = run["weight/0.weight"]
    series = tensor.raw_series()
    assert series.values.shape == (len(series.steps), 8, 4)
    assert len(series.steps) > 1
    assert list(series.steps) == list(tensor.raw_steps())
    for step, values in zip(series.steps, series.values, strict=True):
        np.testing.assert_array_equal(values, tensor.value(int(step)))


def test_a_tensor_without_a_copy_is_read_only_and_outlives_the_run(run: td.Run) -> None:
    again = td.Run(run.path)
    step = int(again["weight/0.weight"].raw_steps()[0])
    mapped = again["weight/0.weight"].value(step, copy=False)
    copied = again["weight/0.weight"].value(step)
    del again
    assert not mapped.flags.writeable
    assert copied.flags.writeable
    np.testing.assert_array_equal(mapped, copied)


def test_statistics_of_whole_tensors_are_those_that_were_recorded(run: td.Run) -> None:
    series = run["weight/0.weight"].raw_series()
    l2 = dict(zip(*run["weight/0.weight"].series("l2"), strict=True))
    for step, values in zip(series.steps, series.values, strict=True):
        if step in l2:
            assert l2[step] == pytest.approx(float(np.linalg.norm(values)), rel=1e-5)


def test_what_follows_from_statistics_is_asked_for_like_them(run: td.Run) -> None:
    tensor = run["weight/0.weight"]
    whole = dict(zip(*tensor.raw_series(), strict=True))
    for name, of in (
        ("variance", np.var),
        ("sum", np.sum),
        ("mean_abs", lambda values: np.mean(np.abs(values))),
        ("rms", lambda values: np.sqrt(np.mean(values**2))),
    ):
        series = tensor.series(name)
        assert list(series.steps) == list(tensor.steps())
        for step, value in zip(*series, strict=True):
            if step in whole:
                expected = float(of(whole[step].astype(np.float64)))
                assert value == pytest.approx(expected, rel=1e-4, abs=1e-5), name


def test_names_by_step_and_mode(run: td.Run) -> None:
    kept = int(run["weight/0.weight"].raw_steps()[0])
    assert "weight/0.weight" in run.names(step=kept)
    assert run.names(mode="predict") == []
    assert "loss" not in run.names(step=10**6)


def test_a_whole_run_verifies_and_a_changed_byte_is_named(run: td.Run, tmp_path: Path) -> None:
    import shutil

    assert run.verify() == []
    copy = Path(shutil.copytree(run.path, tmp_path / "copy"))
    blob = copy / "w0000" / "000000.blob"
    data = bytearray(blob.read_bytes())
    data[4096] ^= 1
    blob.write_bytes(data)
    damage = td.Run(copy).verify()
    assert len(damage) == 1
    assert damage[0]["file"] == str(blob)
    assert damage[0]["offset"] == 4096


def test_waiting_wakes_for_new_steps_and_ends_with_the_run(tmp_path: Path) -> None:
    directory = tmp_path / "live"
    with subprocess.Popen(
        [sys.executable, "-c", RECORD, directory, "30", "0.02"], stdout=subprocess.PIPE, text=True
    ) as training:
        assert training.stdout is not None
        training.stdout.readline()
        run = td.Run(directory)
        assert not run.loaded_all_steps
        seen = [len(run.steps())]
        while not run.loaded_all_steps:
            run.wait(20)
            seen.append(len(run.steps()))
        training.stdout.read()
    assert training.returncode == 0
    assert seen == sorted(seen)
    assert seen[-1] == 30
    assert run.wait(0) is False


def test_missing_workers_are_named(tmp_path: Path) -> None:
    directory = tmp_path / "ranks"
    environment = dict(os.environ, RANK="1", WORLD_SIZE="3")
    subprocess.run(
        [sys.executable, "-c", RECORD, directory, "3", "0"],
        check=True,
        timeout=120,
        env=environment,
    )
    run = td.Run(directory)
    assert run.workers == [1]
    assert run.missing_workers == [0, 2]
    assert list(run.step_of_workers(0)) == [1]
    assert json.dumps(run.to_dict())


def read_all(run: td.Run) -> str:
    """Most that can be asked of a run, as text."""
    names = run.names()
    return repr(
        (
            names,
            [run[name].values().tolist() for name in names if run[name].role != "classes"],
            [(step.step, dict(step.scalars), sorted(step.tensors)) for step in run.iter_steps()],
            run["weight/0.weight"].raw_series().values.tolist(),
            (run.totals, run.damage, run.end, run.is_complete, run.refresh(), run.verify()),
        )
    )


def test_threads_read_one_run_at_once(run: td.Run) -> None:
    wanted = read_all(run)
    again = td.Run(run.path)
    begin = threading.Barrier(4)

    def read() -> list[str]:
        begin.wait(60)
        return [read_all(again) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        found = [future.result(120) for future in [pool.submit(read) for _ in range(4)]]
    assert [text == wanted for texts in found for text in texts] == [True] * 20


WAIT_AS_DAEMONS = """
import sys, threading, time
import traindbg as td

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)  # Python ends, and other threads come back meanwhile

slow = Slow()
run = td.Run(sys.argv[1])
for _ in range(8):
    threading.Thread(target=run.wait, args=(1000,), daemon=True).start()
"""


def test_threads_that_wait_do_not_disturb_the_end_of_python(run: td.Run) -> None:
    result = subprocess.run(
        [sys.executable, "-c", WAIT_AS_DAEMONS, str(run.path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_the_child_of_a_fork_reads_on(run: td.Run) -> None:
    again = td.Run(run.path)
    wanted = again.scalars("loss").values.tolist()
    child = os.fork()
    if child == 0:
        os._exit(0 if again.scalars("loss").values.tolist() == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
