"""The document, the C++ code and an independent reader agree about the native format."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_bytes import (
    COLUMNS,
    COUNTS,
    REALS,
    UNITS,
    Cursor,
    File,
    FormatError,
    crc32c,
    json_is_whole,
)
from native_reader import MODES, SECTIONS, Worker
from native_segment import StoredColumn, StoredPage, rewrite
from torch import nn

import traindbg as td

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden" / "native_v1"
DTYPE_NAMES = [
    *("unknown", "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"),
    *("complex64", "complex128", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
]
STATISTICS = (*REALS, "count", "nan", "zero", *UNITS)


def exact(value: Any) -> Any:
    """Numbers as text that tells -0.0 from 0.0 and int from float; NaN is equal to itself."""
    if isinstance(value, dict):
        return {str(key): exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    return value if isinstance(value, str) else repr(value)


def wanted_steps(expected: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of expected.json, whose numbers that JSON does not have are text."""
    for step in expected["steps"]:
        step["scalars"] = {key: float(value) for key, value in step["scalars"].items()}
        for sample in step["statistics"].values():
            sample.update({name: float(sample[name]) for name in REALS})
        # Of version 1.0 there are neither.
        step.setdefault("channels", {})
        step["digests"] = {
            tensor: (fingerprint, float(product))
            for tensor, (fingerprint, product) in step.get("digests", {}).items()
        }
    return list(expected["steps"])


def found_steps(worker: Worker) -> list[dict[str, Any]]:
    """Those of a reader, with whole tensors as expected.json has them."""
    steps = []
    for step in worker.steps:
        whole = {}
        for tensor, (dtype, shape, values) in step["tensors"].items():
            kept = {"dtype": DTYPE_NAMES[dtype], "bytes": values.tobytes().hex()}
            whole[tensor] = kept | {"shape": list(shape)}
        steps.append(step | {"tensors": whole})
    return steps


def check_tensors(worker: Worker, expected: dict[str, Any]) -> None:
    assert len(worker.tensors) == len(expected["tensors"])
    for found, wanted in zip(worker.tensors, expected["tensors"], strict=True):
        for key in ("name", "module", "module_type", "layer"):
            assert found[key] == wanted[key], key
        assert DTYPE_NAMES[found["dtype"]] == wanted["dtype"]
        assert list(found["shape"]) == wanted["shape"]
        assert found["collections"] == wanted.get("collections", [])
        shard = {k: list(v) if k != "placement" else v for k, v in found.get("shard", {}).items()}
        assert shard == wanted.get("shard", {})


def golden_copy(directory: Path) -> Path:
    shutil.copytree(GOLDEN / "w0000", directory / "w0000")
    return directory / "w0000"


@pytest.fixture(name="expected", scope="module")
def _expected() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
    return content


def test_the_checksum_is_the_documented_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_every_value_of_the_golden_run(expected: dict[str, Any]) -> None:
    names = sorted(path.name for path in (GOLDEN / "w0000").iterdir())
    assert names == ["000000.blob", "000000.seg", "000001.log"]
    worker = Worker(GOLDEN / "w0000")
    assert worker.is_complete
    assert worker.torn == 0
    assert list(worker.drops) == expected["drops"]
    assert worker.worker == expected["worker"]
    events = [
        [wall, kind, json.dumps(data, separators=(",", ":"))] for wall, kind, data in worker.events
    ]
    assert events == expected["events"]
    assert len(worker.steps) == 10
    for section in SECTIONS[:5]:
        assert any(step[section] for step in worker.steps[:5]), section
        assert any(step[section] for step in worker.steps[5:]), section
    for found, wanted in zip(found_steps(worker), wanted_steps(expected), strict=True):
        assert exact(found) == exact(wanted)


def test_every_tensor_of_the_golden_run(expected: dict[str, Any]) -> None:
    worker = Worker(GOLDEN / "w0000")
    check_tensors(worker, expected)
    assert [tensor["role"] for tensor in worker.tensors] == [1, 7, 4, 9]
    assert worker.tensors[1]["activation"] == 1


def test_a_torn_tail_is_told_and_costs_what_is_in_it(tmp_path: Path) -> None:
    directory = golden_copy(tmp_path)
    log = directory / "000001.log"
    data, whole = log.read_bytes(), Worker(directory)
    ends = [0, *(frame.end for frame in File(log, 0).frames)]
    for size in range(0, len(data), 13):
        log.write_bytes(data[:size])
        worker = Worker(directory)
        assert worker.torn == size - max(end for end in ends if end <= size)
        assert not worker.is_complete
        assert found_steps(worker) == found_steps(whole)[: len(worker.steps)]
        assert len(worker.steps) >= 5


@pytest.mark.parametrize("name", ["000000.seg", "000000.blob"])
def test_what_is_finished_must_be_whole(tmp_path: Path, name: str) -> None:
    directory = golden_copy(tmp_path)
    data = (directory / name).read_bytes()
    for size in range(0, len(data), 97):
        (directory / name).write_bytes(data[:size])
        with pytest.raises(FormatError):
            Worker(directory)


@pytest.mark.parametrize("name", ["000000.seg", "000000.blob", "000001.log"])
def test_a_changed_byte_is_found(tmp_path: Path, name: str) -> None:
    directory = golden_copy(tmp_path)
    data, whole = (directory / name).read_bytes(), found_steps(Worker(directory))
    unnoticed = []
    for at in range(0, len(data), 29):
        (directory / name).write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            worker = Worker(directory)
        except FormatError:
            continue
        if worker.torn:  # the last frame
            assert found_steps(worker) == whole[: len(worker.steps)]
            continue
        unnoticed.append(at)
        assert found_steps(worker) == whole
    assert not unnoticed


def test_the_checksum_of_json_files(run_dir: Path) -> None:
    text = (ROOT / "docs" / "format" / "native.md").read_text()
    block = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert block is not None
    assert json_is_whole(block.group(1).encode())
    assert json_is_whole((GOLDEN / "RUN.json").read_bytes()) is None
    with td.watch(nn.Linear(2, 2), run_dir=run_dir, supervise=False):
        pass
    for name in ("RUN.json", "plan.json"):
        data = (run_dir / name).read_bytes()
        assert json_is_whole(data), name
        assert list(json.loads(data))[-1] == "crc32c"
        some = {*range(0, len(data), max(1, len(data) // 300)), *range(len(data) - 40, len(data))}
        assert not any(
            json_is_whole(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) for at in some
        )


def test_the_log_is_read_where_the_segment_is_damaged(tmp_path: Path) -> None:
    directory = golden_copy(tmp_path)
    # Of part 1, whose log is whole.
    damaged = (directory / "000000.seg").read_bytes()[:-8]
    (directory / "000001.seg").write_bytes(damaged)
    assert len(Worker(directory).steps) == 10


def test_a_part_that_is_missing_in_the_middle_is_refused(tmp_path: Path) -> None:
    directory = golden_copy(tmp_path)
    (directory / "000001.log").rename(directory / "000002.log")
    with pytest.raises(FormatError, match="missing"):
        Worker(directory)


def test_parts_and_blobs_may_be_missing_at_the_beginning(tmp_path: Path) -> None:
    directory = golden_copy(tmp_path)
    whole = found_steps(Worker(directory))
    (directory / "000000.seg").unlink()
    assert found_steps(Worker(directory)) == whole[5:]
    (directory / "000000.blob").rename(directory / "000007.blob")
    kept = [values for step in Worker(directory).steps for *_, values in step["tensors"].values()]
    assert kept
    assert all(values is None for values in kept)


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("more than 64 bits", b"\xff" * 9 + b"\x02"),
        ("more than 64 bits", b"\x80" * 10 + b"\x00"),
        ("beyond its end", b"\x80"),
    ],
)
def test_a_varint_that_is_none_is_refused(what: str, data: bytes) -> None:
    with pytest.raises(FormatError, match=what):
        Cursor(data).varint()


def test_the_worked_example_of_the_document(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "format" / "native.md").read_text()
    block = re.search(r"```hex\n(.*?)```", text, re.DOTALL)
    assert block is not None
    directory = tmp_path / "w0003"
    directory.mkdir()
    log = directory / "000000.log"
    log.write_bytes(bytes.fromhex("".join(line[6:] for line in block.group(1).splitlines())))
    worker = Worker(directory)
    assert "".join(frame.letter for frame in File(log, 3).frames) == "HHSTE"
    assert worker.is_complete
    [step] = worker.steps
    assert (step["mode"], step["step"], step["sequence"]) == ("train", 300, 301)
    reals = dict(zip(REALS, (-1.0, 2.0, 0.5, 1.0, 4.0, 2.5), strict=True))
    counts = dict(zip(COUNTS + UNITS, (6, 0, 0, 0, 2, 0, 0, 0, 0), strict=True))
    assert step["statistics"] == {0: reals | counts}
    assert step["scalars"] == {1: 0.25}


def test_a_recorded_training_is_read_to_the_same_numbers(run_dir: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, weights = [], []
    with td.watch(model, run_dir=run_dir, raw="weights", supervise=False):
        for _ in range(10):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3))
            loss.backward()
            losses.append(loss.item())
            weights.append(model[0].weight.detach().numpy().copy())  # seen as the step begins
            optimizer.step()
    worker = Worker(run_dir / "w0000")
    assert worker.is_complete
    assert worker.torn == 0
    ids = {tensor["name"]: id_ for id_, tensor in enumerate(worker.tensors)}
    assert [step["scalars"][ids["loss"]] for step in worker.steps] == losses
    weight = ids["weight/0.weight"]
    kept = [step for step in worker.steps if weight in step["tensors"]]
    assert kept
    for step in kept:
        *_, values = step["tensors"][weight]
        assert values.tobytes() == weights[step["step"]].tobytes()
    run = td.Run(run_dir)
    for name, id_ in ids.items():
        samples = [(s["step"], s["statistics"].get(id_)) for s in worker.steps]
        for statistic in REALS:
            wanted = [(step, sample[statistic]) for step, sample in samples if sample]
            check_series(run.tensor(name).series(statistic), wanted)


# Random runs.


def random_run(seed: int, directory: Path) -> dict[str, Any]:
    """Made by a program of the C++ tests; gives what must be read."""
    built = os.environ.get("TRAINDBG_FIXTURES")
    places = [Path(built)] if built else sorted((ROOT / "build").glob("*/tests/cpp"))
    programs = [place / "write_random_run" for place in places]
    programs = [program for program in programs if program.is_file()]
    if not programs:
        pytest.fail("build the C++ tests first: `make test-cpp`, or the target write_random_run")
    newest = max(programs, key=lambda program: program.stat().st_mtime)
    subprocess.run([newest, str(seed), str(directory)], check=True, timeout=60)
    content: dict[str, Any] = json.loads((directory / "expected.json").read_text())
    return content


def check_step(run: td.Run, worker: int, wanted: dict[str, Any], names: list[str]) -> None:
    """All that the package tells of one step."""
    step = run.step(wanted["step"], wanted["mode"], worker)
    for name in ("mode", "step", "wall_nanos", "step_nanos", "capture_nanos"):
        assert getattr(step, name) == wanted[name]
    by_name = {
        section: {names[int(tensor)]: sample for tensor, sample in wanted[section].items()}
        for section in SECTIONS
    }
    assert exact(step.scalars) == exact(by_name["scalars"])
    statistics = {
        name: {key: getattr(sample.statistics, key) for key in REALS + COUNTS}
        | {key: getattr(sample, key) for key in UNITS}
        for name, sample in step.tensors.items()
    }
    assert exact(statistics) == exact(by_name["statistics"])
    classes = {name: [c.labels, c.predictions, c.hits] for name, c in step.classes.items()}
    assert classes == by_name["classes"]
    for name, columns in by_name["channels"].items():
        channels = run.tensor(name, worker).channels(wanted["step"], wanted["mode"])
        assert exact([column.tolist() for column in channels]) == exact(columns)
    for name, (fingerprint, product) in by_name["digests"].items():
        digest = run.tensor(name, worker).digest(wanted["step"], wanted["mode"])
        assert digest.fingerprint == f"{fingerprint:016x}"
        assert exact(digest.product) == exact(product)
    for name, sample in by_name["tensors"].items():
        dtype, shape, data = run._reader.raw(worker, wanted["mode"], wanted["step"], name)
        found = {"dtype": dtype, "bytes": bytes(data).hex(), "shape": list(shape)}
        assert found == sample


def check_package(directory: Path, expected: dict[str, Any]) -> None:
    """What the package reads, step by step and column by column."""
    run = td.Run(directory)
    assert run.verify() == []
    assert run.is_complete == expected["complete"]
    names = [tensor["name"] for tensor in expected["tensors"]]
    for worker in (0, 1):
        for mode in MODES[1:]:
            steps = [step for step in expected["steps"] if step["mode"] == mode]
            for step in steps[:: 1 + len(steps) // 200]:
                check_step(run, worker, step, names)
            for tensor, name in enumerate(names):
                key = str(tensor)
                values = [(s["step"], s["scalars"][key]) for s in steps if key in s["scalars"]]
                check_series(run.tensor(name, worker).series("value", mode), values)
                samples = [(s["step"], s["statistics"].get(key)) for s in steps]
                for statistic in STATISTICS if len(names) < 20 or tensor % 20 == 0 else ():
                    values = [
                        (step, float(sample[statistic]))
                        for step, sample in samples
                        if sample and (sample["units"] or statistic not in UNITS)
                    ]
                    check_series(run.tensor(name, worker).series(statistic, mode), values)


def check_series(found: Any, wanted: list[tuple[int, float]]) -> None:
    assert found.steps.tolist() == [step for step, _ in wanted]
    assert exact(found.values.tolist()) == exact([value for _, value in wanted])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**64 - 1))
def test_random_runs_are_read_alike(seed: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "run"
        expected = random_run(seed, directory)
        wanted = wanted_steps(expected)
        for number in (0, 1):
            worker = Worker(directory / f"w{number:04}")
            check_tensors(worker, expected)
            assert worker.torn == 0
            assert worker.is_complete == expected["complete"]
            assert list(worker.drops) == expected["drops"]
            events = [
                [wall, kind, json.dumps(data, separators=(",", ":"))]
                for wall, kind, data in worker.events
            ]
            assert events == expected["events"]
            assert exact(found_steps(worker)) == exact(wanted)
        assert (directory / "w0001" / "000000.seg").is_file()
        check_package(directory, expected)


# What a newer version may add to a segment.

ROWS_OF_FIVE = StoredColumn(0, 0, 2, bytes([0, 2]))  # 0, 1, 2, 3, 4


def both_read(directory: Path) -> tuple[list[dict[str, Any]], td.Run]:
    """The steps as our own reader has them, compared with what the package tells; and the run."""
    steps = found_steps(Worker(directory / "w0000"))
    run = td.Run(directory)
    names = [info["name"] for info in run._reader.tensors(0)]
    for step in steps:
        check_step(run, 0, step, names)
    return steps, run


@pytest.fixture(name="run_copy")
def _run_copy(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "run")
    return tmp_path / "run"


def test_an_unknown_column_and_an_unknown_kind_of_page_are_skipped(run_copy: Path) -> None:
    wanted, _ = both_read(run_copy)

    def add(page: StoredPage) -> list[StoredPage]:
        more = StoredColumn(99, 4, 3, b"new")
        pages = [page._replace(columns=(*page.columns, more, StoredColumn(255, 9, 0, b"")))]
        if page.kind == 0:
            columns = (ROWS_OF_FIVE, StoredColumn(32, 9, 7, b"newer"))
            pages.append(StoredPage(9, 70_000, page.rows, 0, columns))
        return pages

    rewrite(run_copy / "w0000" / "000000.seg", add)
    found, run = both_read(run_copy)
    assert exact(found) == exact(wanted)
    assert run.verify() == []
    # Also where the index has to be made anew.
    path = run_copy / "w0000" / "000000.seg"
    data = path.read_bytes()
    path.write_bytes(data[:-200] + bytes(byte ^ 255 for byte in data[-200:]))
    run = td.Run(run_copy)
    for step in wanted:
        check_step(run, 0, step, run.names())
    assert run.damage
    assert not any(place["newer"] for place in run.damage)


def unknown_encoding(kind: int, tensor: int, column: str) -> Callable[[StoredPage], Any]:
    """Gives one column of the pages an encoding that nobody knows."""

    def change(page: StoredPage) -> list[StoredPage]:
        columns = [
            entry._replace(encoding=entry.encoding & 128 | 9)
            if (page.kind, page.tensor, COLUMNS[entry.number]) == (kind, tensor, column)
            else entry
            for entry in page.columns
        ]
        return [page._replace(columns=tuple(columns))]

    return change


@pytest.mark.parametrize(
    ("kind", "tensor", "column"),
    [
        (1, 0, "l2"),
        (1, 0, "zero"),
        (1, 1, "units"),
        (2, 2, "value"),
        (3, 3, "bytes"),
        (4, 0, "lengths"),
    ],
)
def test_a_column_in_an_unknown_encoding_costs_nothing_else(
    run_copy: Path, kind: int, tensor: int, column: str
) -> None:
    wanted, run = both_read(run_copy)
    name = run.names()[tensor]
    wanted_series = {
        statistic: exact(run[name].series(statistic).values.tolist()) for statistic in STATISTICS
    }
    rewrite(run_copy / "w0000" / "000000.seg", unknown_encoding(kind, tensor, column))
    found, run = both_read(run_copy)
    for step in wanted[:5]:
        step[SECTIONS[kind - 1]].pop(tensor, None)
    assert exact(found) == exact(wanted)
    for statistic in STATISTICS if kind == 1 else ():
        values = exact(run[name].series(statistic).values.tolist())
        depends_on_it = statistic == column or (column == "units" and statistic in UNITS)
        assert (values == wanted_series[statistic]) == (not depends_on_it), statistic
    [place] = run.verify()
    assert place["newer"]
    assert "newer version" in place["what"]
    assert "not read: " in place["what"]
    assert "lost" not in place["what"]


def test_the_program_does_not_call_damage_what_is_newer(run_copy: Path) -> None:
    rewrite(run_copy / "w0000" / "000000.seg", unknown_encoding(1, 0, "l2"))
    done = subprocess.run(
        [Path(sys.executable).parent / "traindbg", "verify", run_copy],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0
    assert "written by a newer version" in done.stdout
    assert "nothing that could be verified is damaged" in done.stdout


def test_a_time_in_an_unknown_encoding_is_not_known(run_copy: Path) -> None:
    wanted, _ = both_read(run_copy)
    rewrite(run_copy / "w0000" / "000000.seg", unknown_encoding(0, 0, "wall_nanos"))
    found, run = both_read(run_copy)
    for step in wanted[:5]:
        step["wall_nanos"] = 0
    assert exact(found) == exact(wanted)
    assert [place["newer"] for place in run.verify()] == [True]
