"""An independent reader of traindbg's native run format.

Written from docs/format/native.md alone, with the standard library and NumPy. It shares no code
with traindbg and exists so that the document and the C++ code cannot drift apart unnoticed.

It is strict: anything that the document does not allow raises ``FormatError``. A torn tail is the
one exception; it is reported in ``Log.tail_bytes``.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

MODES = {1: "train", 2: "eval", 3: "predict", 4: "global"}
DTYPES = (
    *("unknown", "float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"),
    *("complex64", "complex128"),
)
MOMENTS = ("min", "max", "mean", "std", "l1", "l2")
COUNTS = ("count", "nan", "positive_infinite", "negative_infinite", "zero")


class FormatError(Exception):
    """The bytes are not what docs/format/native.md describes."""


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of ``data``."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Cursor:
    """Walks bytes; running off their end is a ``FormatError``."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        if size > len(self.data) - self.at:
            raise FormatError("a field lies beyond the end")
        self.at += size
        return self.data[self.at - size : self.at]

    def fixed(self, code: str) -> Any:
        """One number, ``code`` as in ``struct``."""
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def varint(self) -> int:
        """An unsigned LEB128 number."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def zigzag(self) -> int:
        """A signed number."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def text(self) -> str:
        """A length and that many bytes of UTF-8."""
        return self.take(self.varint()).decode()

    def shape(self) -> list[int]:
        """A number of dimensions and their extents."""
        return [self.zigzag() for _ in range(self.varint())]

    def column(self, dtype: str, size: int) -> list[float]:
        """``size`` numbers of one NumPy element type."""
        width = np.dtype(dtype).itemsize
        return [float(x) for x in np.frombuffer(self.take(size * width), dtype=dtype)]


class Ids:
    """A list of tensor ids, each written as its distance from the one before plus one."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.expected = 0

    def next(self) -> int:
        """The next id of the list."""
        value = self.expected + self.cursor.zigzag()
        self.expected = value + 1
        return value


@dataclasses.dataclass
class Frame:
    """One frame of a file."""

    offset: int
    sequence: int
    type: int
    payload: bytes


@dataclasses.dataclass
class Log:
    """All that one worker's log holds."""

    tensors: dict[int, dict[str, Any]] = dataclasses.field(default_factory=dict)
    worker: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    events: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    dropped: tuple[int, int] = (0, 0)
    complete: bool = False
    tail_bytes: int = 0


def frames(data: bytes) -> tuple[list[Frame], int]:
    """All whole frames of a file, and how many bytes at its end are none.

    Raises ``FormatError`` for a bad frame that is followed by others.
    """
    found: list[Frame] = []
    salt = at = 0
    while len(data) - at >= 24:
        magic, size, sequence, kind, flags, crc = struct.unpack_from("<4sIQHHI", data, at)
        whole = (24 + size + 7) // 8 * 8
        if magic != b"TDBF" or size > 1 << 24:
            raise FormatError(f"no frame at {at}")
        if at + whole > len(data):
            break
        covered = struct.pack("<Q", 0 if kind == 1 else salt)
        covered += data[at + 4 : at + 20] + data[at + 24 : at + whole]
        if crc32c(covered) != crc or sequence != len(found):
            raise FormatError(f"bad frame at {at}")
        frame = Frame(at, sequence, kind, data[at + 24 : at + 24 + size])
        if sequence == 0:
            major, _, _, _, _, _, salt = struct.unpack_from("<HHHHIIQ", frame.payload)
            if kind != 1 or major != 1:
                raise FormatError("not a file of version 1")
        if flags == 0:
            found.append(frame)
        at += whole
    return found, len(data) - at


def schema(payload: bytes, tensors: dict[int, dict[str, Any]]) -> None:
    """Adds the tensors of a SCHEMA to ``tensors``."""
    cursor = Cursor(payload)
    for _ in range(cursor.varint()):
        entry = Cursor(cursor.take(cursor.varint()))
        info: dict[str, Any] = {"id": entry.varint(), "name": entry.text()}
        info["role"], info["activation"] = entry.fixed("B"), entry.fixed("B")
        info["module"], info["module_type"], info["layer"] = (
            entry.text(),
            entry.text(),
            entry.zigzag(),
        )
        info["dtype"], info["shape"] = DTYPES[entry.fixed("B")], entry.shape()
        info["collections"] = [entry.text() for _ in range(entry.varint())]
        tensors.setdefault(info["id"], info)


def statistics(cursor: Cursor, tensors: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Section 1 of a STEP."""
    size = cursor.varint()
    ids = Ids(cursor)
    samples: list[dict[str, Any]] = [{"tensor": ids.next()} for _ in range(size)]
    for name in MOMENTS:
        for sample, value in zip(samples, cursor.column("<f4", size), strict=True):
            sample[name] = value
    for sample, marks in zip(samples, list(cursor.take(size)), strict=True):
        usual = int(np.prod(tensors[sample["tensor"]]["shape"], dtype=np.int64))
        for bit, name in enumerate(COUNTS):
            sample[name] = cursor.varint() if marks >> bit & 1 else (usual if bit == 0 else 0)
    return samples


def class_column(cursor: Cursor, classes: int) -> list[int]:
    """One column of section 4."""
    if cursor.fixed("B") == 0:
        return [cursor.varint() for _ in range(classes)]
    values = [0] * classes
    index = -1
    for _ in range(cursor.varint()):
        index += 1 + cursor.varint()
        values[index] = cursor.varint()
    return values


def step(payload: bytes, log: Log) -> dict[str, Any]:
    """A STEP, without the bytes of its whole tensors."""
    cursor = Cursor(payload)
    record: dict[str, Any] = {"mode": MODES[cursor.fixed("B")]}
    record["step"], record["sequence"] = cursor.varint(), cursor.varint()
    record["wall_nanos"], record["monotonic_nanos"] = cursor.fixed("q"), cursor.fixed("q")
    record["step_nanos"], record["capture_nanos"] = cursor.varint(), cursor.varint()
    record["raw_place"] = (cursor.varint(), cursor.varint(), cursor.varint())
    while cursor.at < len(payload):
        number = cursor.varint()
        section = Cursor(cursor.take(cursor.varint()))
        if number == 1:
            record["tensors"] = statistics(section, log.tensors)
        elif number == 2:
            index = -1
            for _ in range(section.varint()):
                index += 1 + section.varint()
                names = ("units", "inactive_units", "low", "high")
                record["tensors"][index]["units"] = {name: section.varint() for name in names}
        elif number == 3:
            size, ids = section.varint(), Ids(section)
            record["scalars"] = [{"tensor": ids.next()} for _ in range(size)]
            for sample, value in zip(record["scalars"], section.column("<f8", size), strict=True):
                sample["value"] = value
        elif number == 4:
            record["classes"], size, ids = [], section.varint(), Ids(section)
            for _ in range(size):
                sample, classes = {"tensor": ids.next()}, section.varint()
                for name in ("labels", "predictions", "hits"):
                    sample[name] = class_column(section, classes)
                record["classes"].append(sample)
    return record


def raw_tensors(raw: list[Frame], record: dict[str, Any]) -> list[dict[str, Any]]:
    """The whole tensors of one step, joined from the frames of the .raw file."""
    _, begin, size = record["raw_place"]
    tensors: list[dict[str, Any]] = []
    for frame in raw:
        if frame.type != 5 or not begin <= frame.offset < begin + size:
            continue
        cursor = Cursor(frame.payload)
        tensor, mode, number = cursor.varint(), MODES[cursor.fixed("B")], cursor.varint()
        if (mode, number, cursor.varint()) != (record["mode"], record["step"], record["sequence"]):
            raise FormatError("a whole tensor of another step")
        dtype, shape, total = DTYPES[cursor.fixed("B")], cursor.shape(), cursor.varint()
        if cursor.varint() == 0:
            tensors.append(
                {"tensor": tensor, "dtype": dtype, "shape": shape, "bytes": b"", "total": total}
            )
        tensors[-1]["bytes"] += cursor.take(cursor.varint())
    if len(tensors) != record["raw_place"][0] or any(
        len(t["bytes"]) != t.pop("total") for t in tensors
    ):
        raise FormatError("whole tensors are missing")
    return tensors


def read_worker(directory: Path) -> Log:
    """Reads ``000000.log`` and ``000000.raw`` of one worker's directory."""
    found, tail = frames((directory / "000000.log").read_bytes())
    log = Log(tail_bytes=tail)
    raw_path = directory / "000000.raw"
    raw = frames(raw_path.read_bytes())[0] if raw_path.exists() else []
    for frame in found:
        cursor = Cursor(frame.payload)
        if frame.type == 2:
            schema(frame.payload, log.tensors)
        elif frame.type == 3:
            log.worker = json.loads(frame.payload)
        elif frame.type == 4:
            log.steps.append(step(frame.payload, log))
            log.steps[-1]["raw"] = raw_tensors(raw, log.steps[-1])
        elif frame.type == 6:
            log.events.append(
                {"wall_nanos": cursor.fixed("q"), "kind": cursor.text(), "json": cursor.text()}
            )
        elif frame.type in (7, 8):
            cursor.take(8)
            cursor.varint()
            log.dropped = (cursor.varint(), cursor.varint())
            log.complete = frame.type == 8
    return log
