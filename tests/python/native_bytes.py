"""Frames and encodings of the native run format, written from docs/format/native.md."""

import math
import re
import struct
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

# Types of frames, a letter each, and what a file of each kind is made of.
LETTERS = dict(zip((1, 2, 3, 4, 6, 7, 8, 10, 11, 12), "HSWTVDEPIF", strict=True))
ORDER = {".log": r"(H|HH[SWTVD]*E?)?", ".seg": r"HHS*W?V*[DE]?P*I*F", ".blob": r"HH"}
STEP = ("mode", "step", "sequence", "wall_nanos", "monotonic_nanos", "step_nanos", "capture_nanos")
REALS = ("min", "max", "mean", "std", "l1", "l2")
COUNTS = ("count", "nan", "positive_infinite", "negative_infinite", "zero")
UNITS = ("units", "inactive_units", "low", "high")
COLUMNS = {0: "row", 32: "value", 40: "lengths", 41: "bytes", 42: "bytes"}
COLUMNS |= (
    dict(enumerate(REALS, 1)) | dict(enumerate(COUNTS + UNITS, 16)) | dict(enumerate(STEP, 48))
)
# Of each kind of page: the columns that are always there, and those that may be.
ALWAYS: tuple[set[int], ...] = (
    {0},
    {0},
    {0, 32},
    {0, 40, 41},
    {0, 40, 41},
    {0, 42},
    {0, 40, 41},
    {0, 40, 41},
)
MAYBE: tuple[set[int], ...] = (
    {*range(48, 55)},
    {*range(1, 7), *range(16, 25)},
    set(),
    set(),
    set(),
    set(),
    set(),
    set(),
)
CRC = list(range(256))
for _ in range(8):
    CRC = [value >> 1 ^ (value & 1) * 0x82F63B78 for value in CRC]


class FormatError(ValueError):
    """The document does not allow what the file holds."""


def need(condition: object, what: str) -> None:
    if not condition:
        raise FormatError(what)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def json_is_whole(data: bytes) -> bool | None:
    """Whether a JSON file is as it was written; None for one without a checksum."""
    end = re.search(rb'"crc32c": "([0-9a-f]{8})"\n}\n\Z', data)
    return None if end is None else int(end[1], 16) == crc32c(data[: end.start()])


class Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        need(self.at <= len(self.data), "a field goes beyond its end")
        return self.data[self.at - size : self.at]

    def unpack(self, fields: str) -> tuple[Any, ...]:
        return struct.unpack("<" + fields, self.take(struct.calcsize("<" + fields)))

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.take(1)[0]) & 128:
            value, shift = value | (byte & 127) << shift, shift + 7
            need(shift <= 63, "a varint of more than 64 bits")
        need((value | byte << shift) < 1 << 64, "a varint of more than 64 bits")
        return value | byte << shift

    def zigzag(self) -> int:
        return (value := self.varint()) >> 1 ^ -(value & 1)

    def text(self) -> str:
        return self.take(self.varint()).decode()

    def ids(self, count: int) -> list[int]:
        return list(accumulate((self.zigzag() for _ in range(count)), lambda a, b: a + 1 + b))

    def type_and_shape(self) -> tuple[int, tuple[int, ...]]:
        dtype, dimensions = self.take(1)[0], self.varint()
        need(dtype < 21 and dimensions <= 64, "element type or number of dimensions")
        return dtype, tuple(self.zigzag() for _ in range(dimensions))

    def classes(self) -> list[list[int]]:
        need((size := self.varint()) <= 1 << 20, "too many classes")
        columns = [[0] * size for _ in range(3)]
        for column in columns:
            need((sparse := self.take(1)[0]) <= 1, "form of a column of classes")
            at = -1
            for i in range(self.varint() if sparse else size):
                at = at + 1 + self.varint() if sparse else i
                need(at < size, "a class beyond their number")
                column[at] = self.varint()
            need(max(column, default=0) < 1 << 32, "more than u32 of a class")
        return columns

    def histogram(self) -> dict[int, int]:
        bins: dict[int, int] = {}
        number = -1
        for i in range(self.varint()):
            number = number + 1 + (distance := self.zigzag())
            need(i == 0 or distance >= 0, "bins do not rise")
            bins[number] = self.varint()
        need(all(-259 <= n <= 260 and count for n, count in bins.items()), "a bin")
        return bins

    def channels(self) -> list[list[float]]:
        """The least, the largest, the share of zeros."""
        (size, form) = self.varint(), self.take(1)[0]
        need(size <= 65536 and form <= 1, "number of channels, or their form")
        columns = [list(self.unpack(f"{size}f")) for _ in range(2 + form)]
        columns += [] if form else [[0.0] * size]
        least, most, zeros = columns
        need(not form or any(zeros), "zeros that need not be there")
        need(all(a <= b and 0 <= z <= 1 for a, b, z in zip(*columns, strict=True)), "a channel")
        need(all(math.isfinite(value) for value in least + most), "extremes")
        return columns

    def digest(self) -> tuple[int, float]:
        (fingerprint, product) = self.unpack("Qd")
        return fingerprint, product

    def histograms(self, rows: int) -> list[dict[int, int]]:
        """Those of a page."""
        histograms: list[dict[int, int]] = [{} for _ in range(rows)]
        distances = [self.varint() for _ in range(self.varint())]
        for number in accumulate(distances, lambda a, b: a + 1 + b):
            counts = list(accumulate(self.zigzag() for _ in range(rows)))
            need(number <= 519 and min(counts) >= 0 < max(counts), "a bin")
            for histogram, count in zip(histograms, counts, strict=True):
                histogram.update({number - 259: count} if count else {})
        self.end()
        return histograms

    def end(self) -> None:
        need(self.at == len(self.data), "bytes behind the last field")


def integers(c: Cursor, encoding: int, n: int, is_signed: bool) -> list[int]:
    need(encoding <= 1, "encoding of integers")
    numbers = [c.zigzag() for _ in range(n if encoding else 2)]
    steps = numbers if encoding else [numbers[0], *[numbers[1]] * (n - 1)]
    offset = is_signed << 63
    return [(value + offset) % (1 << 64) - offset for value in accumulate(steps)]


def floats(c: Cursor, encoding: int, n: int, dtype: str) -> list[float]:
    need(encoding in {2, 3}, "encoding of floats")
    width = struct.calcsize(dtype)
    if encoding == 2:
        data = c.take(width) * n
    else:
        data = np.frombuffer(c.take(width * n), np.uint8).reshape(width, n).T.tobytes()
    return list(struct.unpack(f"<{n}{dtype}", data))


class Page(NamedTuple):
    kind: int
    tensor: int
    rows: int
    table_bytes: int
    # Those that are there, by name; None for one in an encoding that is not known.
    columns: dict[str, Any]


def read_page(payload: bytes, salt: bytes) -> Page:
    c = Cursor(payload)
    checksum, table_bytes = c.unpack("II")
    need(crc32c(salt + payload[4:table_bytes]) == checksum, "the checksum of a page's table")
    kind, tensor, n, count = c.take(1)[0], c.varint(), c.varint(), c.varint()
    need(0 < n <= 4096 and (kind or not tensor), "rows or tensor of a page")
    table = [(*c.unpack("BB"), c.varint(), c.varint(), *c.unpack("I")) for _ in range(count)]
    numbers = {entry[0] for entry in table}
    need(c.at == table_bytes and len(numbers) == count, "the table of a page")
    is_known = kind < len(ALWAYS)
    always, maybe = (ALWAYS[kind], MAYBE[kind]) if is_known else ({0}, {*COLUMNS})
    need(always <= numbers & {*COLUMNS} <= always | maybe, f"columns of kind {kind}")
    columns: dict[str, Any] = {}
    for number, encoding, whole_bytes, stored_bytes, stored_checksum in table:
        data, how, name = c.take(stored_bytes), encoding & 127, COLUMNS.get(number)
        need(crc32c(salt + data) == stored_checksum, "the checksum of a column")
        need(whole_bytes <= 64 << 20, "size of a column")
        if name is None or (not is_known and name != "row"):
            continue
        if how > 4:
            columns[name] = None
            continue
        if encoding & 128:
            size = zstandard.frame_content_size(data)
            need(size in {whole_bytes, -1}, "size of a compressed column")
            data = zstandard.ZstdDecompressor().decompress(
                data, whole_bytes, allow_extra_data=False
            )
        need(len(data) == whole_bytes, "size of a column")
        column = Cursor(data)
        if name == "bytes":
            need(how == 4, "encoding of bytes")
            columns[name] = column.take(whole_bytes)
        elif name == "value" or name in REALS:
            columns[name] = floats(column, how, n, "d" if name == "value" else "f")
        else:
            columns[name] = integers(column, how, n, name in {"wall_nanos", "monotonic_nanos"})
        column.end()
    c.end()
    return Page(kind, tensor, n, table_bytes, columns)


class Frame(NamedTuple):
    letter: str
    sequence: int
    payload: bytes
    at: int
    end: int


class File:
    """The frames of a file; `torn` bytes behind the last are none."""

    def __init__(self, path: Path, worker: int, may_be_torn: bool = False) -> None:
        self.data, self.salt, self.run, at = path.read_bytes(), b"", b"", 0
        self.frames: list[Frame] = []
        while frame := self.frame(at):
            need(frame.sequence == len(self.frames), f"{path}: sequence at {at}")
            if frame.letter == "H":
                kind = [*ORDER].index(path.suffix) + 1
                fields = [
                    struct.pack("<HHHHII", 1, minor, kind, 0, worker, int(path.stem))
                    for minor in (0, 1)
                ]
                need(len(frame.payload) == 40 and frame.payload[:16] in fields, f"{path}: header")
                need(
                    frame.payload in {f.payload for f in self.frames or [frame]}, f"{path}: headers"
                )
                self.salt, self.run = frame.payload[16:24], frame.payload[24:]
            self.frames.append(frame)
            at = frame.end
        letters = "".join(frame.letter for frame in self.frames)
        need(re.fullmatch(ORDER[path.suffix], letters), f"{path}: {letters}, no frame at {at}")
        self.torn = len(self.data) - at
        if path.suffix == ".blob":
            need(self.data[at:4096] == bytes(4096 - at), f"{path}: bytes behind the headers")
        else:
            need(may_be_torn or not self.torn, f"{path}: no frame at {at}")
            need(not any(map(self.frame, range(at, len(self.data), 8))), f"{path}: hole at {at}")

    def frame(self, at: int) -> Frame | None:
        """The frame at `at`; None where no valid one stands."""
        if self.data[at : at + 4] != b"TDBF" or at + 24 > len(self.data):
            return None
        size, sequence, kind, flags, checksum = struct.unpack_from("<IQHHI", self.data, at + 4)
        end = at + 24 + (size + 7) // 8 * 8
        salt = bytes(8) if kind == 1 else self.salt
        covered = salt + self.data[at + 4 : at + 20] + self.data[at + 24 : end]
        if size > 1 << 24 or end > len(self.data) or crc32c(covered) != checksum:
            return None
        payload, padding = self.data[at + 24 : at + 24 + size], self.data[at + 24 + size : end]
        need(kind in LETTERS and not flags and not any(padding), f"type, flags, padding at {at}")
        return Frame(LETTERS[kind], sequence, payload, at, end)

    def of(self, *letters: str) -> list[Frame]:
        return [frame for frame in self.frames if frame.letter in letters]
