"""A strict reader of one worker's directory, written from docs/format/native.md.

It is slow and refuses what another reader gets along with: it is here to show that the document is
enough, and that the files are what the document says.
"""

from __future__ import annotations

import json
import math
import re
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from native_bytes import (
    COUNTS,
    REALS,
    STEP,
    UNITS,
    Cursor,
    File,
    FormatError,
    Page,
    crc32c,
    need,
    read_page,
)

MODES = ("", "train", "eval", "predict", "global")
# Kinds 1 to 7 of pages.
SECTIONS = ("statistics", "scalars", "classes", "tensors", "histograms", "channels", "digests")
# NumPy has no bfloat16 (4) and no floats of 8 bits (5, 6, 18 to 20): their bits are given.
DTYPES = "u1,f8,f4,f2,u2,u1,u1,i8,i4,i2,i1,u8,u4,u2,u1,?,c8,c16,u1,u1,u1"


class Worker:
    """All that a directory holds; `torn` bytes at the end of its last log are not a whole frame."""

    def __init__(self, directory: Path) -> None:
        self.number, self.run, self.torn = int(directory.name[1:]), b"", 0
        self.tensors: list[dict[str, Any]] = []
        self.worker: dict[str, Any] = {}
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        self.drops: tuple[int, ...] = ()  # wall time, steps written, steps and tensors dropped
        self.is_complete = False
        self.steps: list[dict[str, Any]] = []
        self.blobs: dict[int, File] = {}
        self.paths: dict[tuple[str, int], Path] = {}
        for path in directory.iterdir():
            match = re.fullmatch(r"(\d{6}|[1-9]\d{6,})(\.log|\.seg|\.blob)", path.name)
            if match and path.is_file() and not path.is_symlink():
                self.paths[match[2], int(match[1])] = path
        parts = sorted({number for suffix, number in self.paths if suffix != ".blob"})
        need(not parts or parts == [*range(parts[0], parts[-1] + 1)], "a part is missing")
        try:
            for part in parts:
                self.read_part(part, is_last=part == parts[-1])
        except (UnicodeDecodeError, json.JSONDecodeError, zstandard.ZstdError) as error:
            raise FormatError(str(error)) from error

    def read_part(self, part: int, is_last: bool) -> None:
        path = self.paths.get((".seg", part)) or self.paths[".log", part]
        try:
            file = File(path, self.number, may_be_torn=is_last and path.suffix == ".log")
        except FormatError:
            need((".log", part) in self.paths and path.suffix == ".seg", f"{path} is damaged")
            path = self.paths[".log", part]
            file = File(path, self.number, may_be_torn=is_last)
        need(not self.run or not file.run or self.run == file.run, f"{path}: another run's")
        self.run, self.torn, self.is_complete = self.run or file.run, file.torn, False
        known, first = 0, len(self.steps)
        for frame in file.frames:
            c = Cursor(frame.payload)
            if frame.letter == "S":
                for _ in range(c.varint()):
                    known += self.read_tensor(Cursor(c.take(c.varint())), known)
            elif frame.letter == "W":
                self.worker = json.loads(c.take(len(frame.payload)))
                need(isinstance(self.worker, dict), f"{path}: WORKER")
            elif frame.letter == "T":
                need(known == len(self.tensors), f"{path}: tensors known before are missing")
                self.read_step(c)
            elif frame.letter == "V":
                self.events.append((c.unpack("q")[0], c.text(), json.loads(c.text())))
                need(isinstance(self.events[-1][2], dict), f"{path}: EVENT")
            elif frame.letter in "DE":
                self.drops = (*c.unpack("q"), c.varint(), c.varint(), c.varint())
                self.is_complete = frame.letter == "E"
            need(frame.letter in "HPIF" or c.at == len(c.data), f"{path}: bytes behind the fields")
        if path.suffix == ".seg":
            need(known == len(self.tensors), f"{path}: tensors known before are missing")
            self.read_pages(file, first)

    def read_tensor(self, c: Cursor, known: int) -> bool:
        """Whether it is new to this part."""
        id_, name, (role, activation) = c.varint(), c.text(), c.unpack("BB")
        need(id_ <= known and id_ < 1 << 20 and name, "id or name of a tensor")
        need(activation <= 4, "activation")
        role = role if role <= 12 else 0  # a newer version's
        tensor = {"name": name, "role": role, "activation": activation, "module": c.text()}
        tensor |= {"module_type": c.text(), "layer": c.zigzag()}
        tensor["dtype"], tensor["shape"] = c.type_and_shape()
        tensor["collections"] = [c.text() for _ in range(c.varint())]
        if c.at < len(c.data):
            shapes = [tuple(c.zigzag() for _ in range(c.varint())) for _ in range(2)]
            tensor["shard"] = dict(zip(("whole_shape", "offset"), shapes, strict=True))
            tensor["shard"]["placement"] = c.text()
            need(all(len(shape) <= 64 for shape in shapes), "number of dimensions of a shard")
        c.end()
        usual = math.prod(tensor["shape"]) if all(e > 0 for e in tensor["shape"]) else 0
        if id_ == len(self.tensors):
            self.tensors.append(tensor | {"usual_count": usual if usual < (1 << 64) - 1 else 0})
        return id_ == known

    def add_step(self, values: tuple[int, ...]) -> None:
        need(1 <= values[0] <= 4, "mode of a step")
        step: dict[str, Any] = dict(zip(STEP, values, strict=True))
        self.steps.append(step | {"mode": MODES[values[0]]} | {name: {} for name in SECTIONS})

    def add(self, row: int, section: str, tensor: int, sample: Any) -> None:
        samples = self.steps[row][section]
        need(tensor not in samples, f"tensor {tensor} twice in {section}")
        if section == "statistics":
            need(sum(sample[name] for name in COUNTS[1:]) <= sample["count"], "more than all")
            need(sample["inactive_units"] <= sample["units"] < 1 << 32, "units")
        samples[tensor] = sample

    def read_step(self, c: Cursor) -> None:
        mode, step, sequence, times = c.take(1)[0], c.varint(), c.varint(), c.unpack("qq")
        self.add_step((mode, step, sequence, *times, c.varint(), c.varint()))
        tensors, last = c.varint(), 0
        statistics: list[dict[str, Any]] = []
        while c.at < len(c.data):
            section, s = c.varint(), Cursor(c.take(c.varint()))
            need(last < section <= 8 and (n := s.varint()), "number or order of sections")
            last, at = section, -1
            if section == 2:
                for _ in range(n):
                    need((at := at + 1 + s.varint()) < len(statistics), "units of nothing")
                    units = {name: s.varint() for name in UNITS}
                    need(0 < units["units"] < 1 << 32, "number of units")
                    need(units["inactive_units"] <= units["units"], "number of inactive units")
                    statistics[at].update(units)
            elif section in {4, 7}:
                for _ in range(n):
                    at += 1 + s.zigzag()
                    need(0 <= at < len(self.tensors), "a tensor without SCHEMA")
                    sample = s.classes() if section == 4 else s.channels()
                    self.add(-1, SECTIONS[section - 2], at, sample)
                of_all = [len(columns[0]) for columns in self.steps[-1]["channels"].values()]
                need(sum(of_all) <= 1 << 19, "too many channels")
            else:
                ids = s.ids(n)
                need(all(0 <= id_ < len(self.tensors) for id_ in ids), "a tensor without SCHEMA")
                samples: Any = [s.histogram() for _ in ids] if section == 6 else []
                if section == 1:
                    samples = statistics = self.statistics(s, ids)
                elif section == 3:
                    samples = s.unpack(f"{n}d")
                elif section == 8:
                    samples = [s.digest() for _ in ids]
                elif section == 5:
                    samples = [self.whole_tensor(s, id_) for id_ in ids]
                for id_, sample in zip(ids, samples, strict=True):
                    self.add(-1, SECTIONS[section - 2 + (section == 1)], id_, sample)
            s.end()
        need(tensors == len(self.steps[-1]["tensors"]), "number of whole tensors")

    def statistics(self, c: Cursor, ids: list[int]) -> list[dict[str, Any]]:
        reals = [c.unpack(f"{len(ids)}f") for _ in REALS]
        samples = []
        for id_, marks, *values in zip(ids, c.take(len(ids)), *reals, strict=True):
            need(marks < 32, "marks that are not known")
            usual = [self.tensors[id_]["usual_count"], 0, 0, 0, 0]
            counts = [c.varint() if marks >> i & 1 else usual[i] for i in range(5)]
            sample = [*values, *counts, 0, 0, 0, 0]
            samples.append(dict(zip(REALS + COUNTS + UNITS, sample, strict=True)))
        return samples

    def whole_tensor(self, c: Cursor, tensor: int) -> Any:
        """Element type, shape, values; None for these where the blob was removed to save space."""
        need((own := c.take(1)[0]) <= 1, "a whole tensor")
        known = self.tensors[tensor]
        dtype, shape = c.type_and_shape() if own else (known["dtype"], known["shape"])
        number, at, size, (checksum,) = c.varint(), c.varint() * 64, c.varint(), c.unpack("I")
        numbers = [blob for suffix, blob in self.paths if suffix == ".blob"]
        if number not in numbers and number < min(numbers, default=number + 1):
            return dtype, shape, None
        need(number in numbers, f"blob {number} is missing")
        if number not in self.blobs:
            self.blobs[number] = File(self.paths[".blob", number], self.number)
        blob = self.blobs[number]
        data = blob.data[at : at + size]
        need(at >= 4096 and crc32c(blob.salt + data) == checksum, "the checksum of a whole tensor")
        values = np.frombuffer(data, DTYPES.split(",")[dtype])
        need(not any(blob.data[at + size : (at + size + 63) & -64]), "zeros behind a whole tensor")
        need(len(data) == size and (not dtype or values.size == math.prod(shape)), "its size")
        return dtype, shape, values.reshape(shape) if dtype else values

    def read_pages(self, file: File, first: int) -> None:
        entries = []
        for frame in file.of("P"):
            page = read_page(frame.payload, file.salt)
            begin, rows = len(self.steps) - first, page.columns["row"]
            need(rows is not None, "the rows of a page are not known")
            if page.kind == 0:
                need(rows == [*range(begin, begin + page.rows)], "rows of steps")
                zeros = [0] * page.rows
                need(all(page.columns.get(name, zeros) for name in STEP[:3]), "steps not known")
                columns = (page.columns.get(name) or zeros for name in STEP)
                for values in zip(*columns, strict=True):
                    self.add_step(values)
            else:
                need(all(a < b for a, b in pairwise(rows)) and rows[-1] < begin, "rows of a page")
                if page.kind <= len(SECTIONS) and None not in page.columns.values():
                    need(page.tensor < len(self.tensors), "a page of a tensor without SCHEMA")
                    for row, sample in zip(rows, self.samples(page), strict=True):
                        self.add(first + row, SECTIONS[page.kind - 1], page.tensor, sample)
                begin = rows[0]
            place = (frame.at, frame.end - frame.at, page.table_bytes)
            entries.append((page.kind, 0, 0, 0, page.tensor, begin, page.rows, *place))
        index = b"".join(struct.pack("<4B3IQII", *entry) for entry in entries)
        need(entries == sorted(entries), "order of pages")
        need(b"".join(frame.payload for frame in file.of("I")) == index, "INDEX")
        last, schema, c = file.frames[-1], file.of("S"), Cursor(file.frames[-1].payload)
        index_at = next((frame.at for frame in file.of("I")), last.at)
        pages_at = next((frame.at for frame in file.of("P")), index_at)
        schema_bytes = sum(frame.end - frame.at for frame in schema)
        places = (128, schema_bytes, pages_at, index_at, last.at - index_at)
        need(c.unpack("5Q") == places, "places in FOOTER")
        steps, checksum = self.steps[first:], crc32c(b"".join(frame.payload for frame in schema))
        nanos = [sum(s[name] for s in steps if s["mode"] == "train") for name in STEP[5:]]
        need(c.unpack("3Q") == (len(steps), *nanos), "steps in FOOTER")
        need(c.unpack("IIQ") == (len(self.tensors), checksum, self.is_complete), "SCHEMA in FOOTER")
        drops = self.drops[2:] if file.of("D", "E") else (0, 0)
        need(c.unpack("2Q") == drops, "drops in FOOTER")
        for mode in MODES[1:]:
            numbers = [step["step"] for step in steps if step["mode"] == mode]
            least, most = min(numbers, default=0), max(numbers, default=0)
            need(c.unpack("3Q") == (len(numbers), least, most), f"{mode} in FOOTER")
        c.end()

    def samples(self, page: Page) -> list[Any]:
        columns, n, c = page.columns, page.rows, Cursor(page.columns.get("bytes", b""))
        if page.kind == 1:
            columns = {"count": [self.tensors[page.tensor]["usual_count"]] * n} | columns
            names = REALS + COUNTS + UNITS
            table = zip(*(columns.get(name, [0] * n) for name in names), strict=True)
            return [dict(zip(names, row, strict=True)) for row in table]
        if page.kind == 2:
            return list(columns["value"])
        if page.kind == 5:
            return c.histograms(n)
        samples: list[Any] = []
        for length in columns["lengths"]:
            s = Cursor(c.take(length))
            if page.kind == 3:
                samples.append(s.classes())
            elif page.kind == 6:
                samples.append(s.channels())
            elif page.kind == 7:
                samples.append(s.digest())
            else:
                samples.append(self.whole_tensor(s, page.tensor))
            s.end()
        c.end()
        return samples
