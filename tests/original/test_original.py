"""What we write in the layout of the SageMaker Debugger client is opened by the client itself.

The client lives in an environment of its own (tools/setup_original.sh), because it needs old
packages. Where that cannot be made, these tests are skipped with the reason; nothing else stands in
for it.
"""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "smdebug"
MAKE_GOLDEN = GOLDEN / "make_golden.py"
NATIVE = ROOT / "tests" / "data" / "golden" / "native_v1"
EXE = os.environ.get("TRAINDBG_EXE") or str(Path(sys.executable).with_name("traindbg"))
PACKING = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i"}
PACKING |= {"uint8": "B", "bool": "?"}


def convert(verb: str, source: Path, target: Path) -> None:
    """`traindbg import` or `traindbg export`."""
    options = ["--format", "smdebug"] if verb == "export" else []
    done = subprocess.run(
        [EXE, verb, str(source), "--to", str(target), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def read(python: str, run: Path) -> dict[str, Any]:
    """What the client reads from `run`."""
    # It waits for ever for files that it misses.
    done = subprocess.run(
        [python, str(MAKE_GOLDEN), "--read", str(run)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "SMDEBUG_LOG_LEVEL": "off"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return result


def numbers(value: dict[str, Any]) -> list[float]:
    """The elements of a value of make_golden.py's, as Python numbers."""
    assert "error" not in value, value
    content = bytes.fromhex(value["hex"])
    letter = PACKING[value["dtype"]]
    count = len(content) // struct.calcsize("<" + letter)
    return [float(number) for number in struct.unpack(f"<{count}{letter}", content)]


def assert_same(found: list[float], wanted: list[float], *, relative: float, what: str) -> None:
    assert len(found) == len(wanted), what
    for a, b in zip(found, wanted, strict=True):
        same = (math.isnan(a) and math.isnan(b)) or a == b
        assert same or math.isclose(a, b, rel_tol=relative, abs_tol=1e-7), (what, found, wanted)


# ---- a run of ours


@pytest.fixture(scope="session")
def exported(original: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    target = tmp_path_factory.mktemp("exported") / "out"
    convert("export", NATIVE, target)
    return read(original, target)


def test_names_steps_modes_and_workers_of_our_run(exported: dict[str, Any]) -> None:
    expected = json.loads((NATIVE / "expected.json").read_text())
    names = {str(tensor["id"]): tensor["name"] for tensor in expected["tensors"]}
    used = {
        names[i] for step in expected["steps"] for i in {**step["statistics"], **step["scalars"]}
    }
    assert exported["names"] == sorted(used)
    steps: dict[str, list[int]] = {"TRAIN": [], "EVAL": [], "PREDICT": []}
    for step in expected["steps"]:
        steps[step["mode"].upper()].append(step["step"])
    assert {mode: exported["steps"][mode] for mode in steps} == steps
    assert exported["modes"] == sorted(mode for mode, found in steps.items() if found)
    assert exported["workers"] == ["worker_0"]
    assert exported["ended"] is True


def test_collections_of_our_run(exported: dict[str, Any]) -> None:
    expected = json.loads((NATIVE / "expected.json").read_text())
    wanted: dict[str, set[str]] = {}
    for tensor in expected["tensors"]:
        for name in [tensor["collection"], *tensor.get("collections", [])]:
            wanted.setdefault(name, set()).add(tensor["name"])
    del wanted["classes"]  # counts of classes have no place in that layout
    found = {name: set(entry["matches"]) for name, entry in exported["collections"].items()}
    assert found == wanted


def test_values_and_reductions_of_our_run(exported: dict[str, Any]) -> None:
    expected = json.loads((NATIVE / "expected.json").read_text())
    names = {str(tensor["id"]): tensor["name"] for tensor in expected["tensors"]}
    place = {tuple(place): int(step) for step, place in exported["global"].items()}
    found = {(entry["name"], entry["step"]): entry for entry in exported["tensors"]}
    seen = {"scalars": 0, "values": 0, "reductions": 0}
    for step in expected["steps"]:
        number = place[step["mode"].upper(), step["step"]]
        for tensor, wanted in step["scalars"].items():
            value = found[names[tensor], number]["value"]
            assert value["shape"] == []
            assert_same(numbers(value), [wanted], relative=0, what=names[tensor])
            seen["scalars"] += 1
        for tensor, wanted in step["tensors"].items():
            if not wanted["bytes"]:
                continue  # the layout has no place for tensors without elements
            value = found[names[tensor], number]["value"]
            assert value["dtype"] == wanted["dtype"]
            assert (value["shape"], value["hex"]) == (wanted["shape"], wanted["bytes"])
            seen["values"] += 1
        for tensor, wanted in step["statistics"].items():
            reductions = found[names[tensor], number]["reductions"]
            assert set(reductions) == {
                *("min", "max", "mean", "std", "variance", "sum", "l1", "l2", "abs_mean", "abs_max")
            }
            for statistic in ("min", "max", "mean", "std", "l1", "l2"):
                number_of = math.nan if wanted["nan"] else wanted[statistic]
                assert_same(
                    numbers(reductions[statistic]), [number_of], relative=1e-6, what=statistic
                )
                seen["reductions"] += 1
    assert min(seen.values()) > 0, seen


# ---- a run of the client's own, through our import and our export, and back


RUNS = ["torch_raw", "torch_reductions", "torch_crash", "two_workers", "devices"]


@pytest.mark.parametrize("run", RUNS)
def test_a_run_of_the_originals_comes_back(run: str, original: str, tmp_path: Path) -> None:
    convert("import", GOLDEN / run, tmp_path / "ours")
    convert("export", tmp_path / "ours", tmp_path / "back")
    found = read(original, tmp_path / "back")
    wanted = json.loads((GOLDEN / f"{run}.json").read_text())
    assert found["names"] == wanted["names"]
    for mode in ("TRAIN", "EVAL", "PREDICT"):
        assert found["steps"][mode] == wanted["steps"][mode]
    assert len(found["workers"]) == len(wanted["workers"])
    # A device becomes a number.
    workers = dict(zip(wanted["workers"], found["workers"], strict=True))
    assert found["modes"] == wanted["modes"]

    place = {tuple(place): int(step) for step, place in found["global"].items()}
    entries = {(e["name"], e["step"], e["worker"]): e for e in found["tensors"]}
    assert len(entries) == len(wanted["tensors"])
    for entry in wanted["tensors"]:
        number = place[tuple(wanted["global"][str(entry["step"])])]
        back = entries[entry["name"], number, workers[entry["worker"]]]
        what = f"{entry['name']} at {entry['step']}"
        if "error" not in entry["value"]:
            assert_same(numbers(back["value"]), numbers(entry["value"]), relative=0, what=what)
        for reduction, value in entry["reductions"].items():
            if reduction in ("std", "variance"):
                continue  # the client's PyTorch hook divides by n - 1, we by n: checked in C++
            if reduction in ("prod", "abs_l1"):
                continue  # what our statistics do not have
            assert_same(
                numbers(back["reductions"][reduction]),
                numbers(value),
                relative=1e-5,
                what=f"{reduction} of {what}",
            )


def test_types_that_the_client_cannot_read_are_widened(original: str, tmp_path: Path) -> None:
    convert("import", GOLDEN / "dtypes", tmp_path / "ours")
    convert("export", tmp_path / "ours", tmp_path / "back")
    found = {
        entry["name"]: entry["value"] for entry in read(original, tmp_path / "back")["tensors"]
    }
    wanted = {
        entry["name"]: entry["value"]
        for entry in json.loads((GOLDEN / "dtypes.json").read_text())["tensors"]
    }
    assert set(found) == set(wanted) - {"text"}
    assert wanted["wide/int16"] == {"error": "KeyError"}  # from the client's own file
    for name in ("int16", "uint16", "uint32", "uint64"):
        assert numbers(found[f"wide/{name}"]) == [0, 1, 2, 100]
    assert found["wide/complex64"] == wanted["wide/complex128"]
    assert found["two/int8"]["dtype"] == "int32"  # it would lose its sign
    for name in ("float16", "float32", "float64", "int32", "int64", "uint8", "bool"):
        assert found[f"two/{name}"] == wanted[f"two/{name}"]
    assert found["special"] == wanted["special"]
