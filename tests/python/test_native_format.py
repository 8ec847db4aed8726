"""The document, the C++ writer and an independent reader agree about the native format."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import native_reader
import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden" / "native_v1"


@pytest.fixture(name="expected")
def _expected() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
    return content


def test_the_checksum_is_the_documented_one() -> None:
    assert native_reader.crc32c(b"123456789") == 0xE3069283


def test_every_value_of_the_golden_run(expected: dict[str, Any]) -> None:
    log = native_reader.read_worker(GOLDEN / "w0000")
    assert log.complete
    assert log.tail_bytes == 0
    assert log.dropped == (0, 0)
    assert log.worker == expected["worker"]
    assert [{k: e[k] for k in ("kind", "json")} for e in log.events] == expected["events"]
    assert len(log.steps) == len(expected["steps"]) == 6
    for step, wanted in zip(log.steps, expected["steps"], strict=True):
        del step["raw_place"]
        for raw in step["raw"]:
            raw["bytes"] = raw["bytes"].hex()
        assert step == wanted


def test_every_tensor_of_the_golden_run(expected: dict[str, Any]) -> None:
    tensors = native_reader.read_worker(GOLDEN / "w0000").tensors
    assert sorted(tensors) == [0, 1, 2, 3]
    for wanted in expected["tensors"]:
        found = tensors[wanted["id"]]
        for key in ("name", "module", "module_type", "layer", "dtype", "shape"):
            assert found[key] == wanted[key], key
        assert found["collections"] == wanted.get("collections", [])
    assert [tensors[i]["role"] for i in range(4)] == [1, 7, 4, 9]
    assert tensors[1]["activation"] == 1


@pytest.mark.parametrize("name", ["000000.log", "000000.raw"])
def test_every_truncation_gives_whole_frames(name: str) -> None:
    data = (GOLDEN / "w0000" / name).read_bytes()
    whole, _ = native_reader.frames(data)
    for size in range(0, len(data), 13):
        found, tail = native_reader.frames(data[:size])
        assert found == whole[: len(found)]
        assert tail == size - (
            found[-1].offset + (24 + len(found[-1].payload) + 7) // 8 * 8 if found else 0
        )


def test_a_changed_byte_is_found() -> None:
    data = (GOLDEN / "w0000" / "000000.log").read_bytes()
    for at in range(0, len(data), 29):
        changed = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        try:
            found, tail = native_reader.frames(changed)
        except native_reader.FormatError:
            continue
        assert tail > 0, at  # a length that now reaches beyond the end
        assert found == native_reader.frames(data)[0][: len(found)]


def test_the_worked_example_of_the_document() -> None:
    text = (ROOT / "docs" / "format" / "native.md").read_text()
    block = re.search(r"```hex\n(.*?)```", text, re.DOTALL)
    assert block is not None
    data = bytes.fromhex("".join(line[6:] for line in block.group(1).splitlines()))
    found, tail = native_reader.frames(data)
    assert tail == 0
    assert [frame.type for frame in found] == [1, 1, 2, 4, 8]
    log = native_reader.Log()
    native_reader.schema(found[2].payload, log.tensors)
    step = native_reader.step(found[3].payload, log)
    assert (step["mode"], step["step"], step["sequence"]) == ("train", 300, 301)
    assert step["tensors"] == [
        {
            "tensor": 0,
            "min": -1.0,
            "max": 2.0,
            "mean": 0.5,
            "std": 1.0,
            "l1": 4.0,
            "l2": 2.5,
            "count": 6,
            "nan": 0,
            "positive_infinite": 0,
            "negative_infinite": 0,
            "zero": 2,
        }
    ]
    assert step["scalars"] == [{"tensor": 1, "value": 0.25}]
