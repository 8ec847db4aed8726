"""Segments as a newer version may write them: made of a file, page by page."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from native_bytes import LETTERS, Cursor, File, crc32c

TYPES = {letter: number for number, letter in LETTERS.items()}


class StoredColumn(NamedTuple):
    number: int
    encoding: int
    whole_bytes: int
    data: bytes  # as stored


class StoredPage(NamedTuple):
    kind: int
    tensor: int
    rows: int
    first_row: int
    columns: tuple[StoredColumn, ...]


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _stored_page(payload: bytes, first_row: int) -> StoredPage:
    c = Cursor(payload)
    c.take(8)
    kind, tensor, rows, count = c.take(1)[0], c.varint(), c.varint(), c.varint()
    table = [(*c.unpack("BB"), c.varint(), c.varint(), *c.unpack("I")) for _ in range(count)]
    columns = (StoredColumn(*entry[:3], c.take(entry[3])) for entry in table)
    return StoredPage(kind, tensor, rows, first_row, tuple(columns))


def _payload(page: StoredPage, salt: bytes) -> tuple[bytes, int]:
    """The payload, and how many bytes of it are the table."""
    table = bytes([page.kind]) + b"".join(map(varint, (page.tensor, page.rows, len(page.columns))))
    for column in page.columns:
        table += bytes([column.number, column.encoding])
        table += varint(column.whole_bytes) + varint(len(column.data))
        table += struct.pack("<I", crc32c(salt + column.data))
    table = struct.pack("<I", 8 + len(table)) + table
    data = b"".join(column.data for column in page.columns)
    return struct.pack("<I", crc32c(salt + table)) + table + data, 4 + len(table)


def rewrite(path: Path, change: Callable[[StoredPage], list[StoredPage]]) -> None:
    """Puts what `change` makes of each page in its place; index and footer follow."""
    file, number = File(path, int(path.parent.name[1:])), 2
    out = bytearray(file.data[:128])

    def append(letter: str, payload: bytes) -> tuple[int, int]:
        """Where the frame begins, and its size."""
        nonlocal number
        begin, padding = len(out), bytes(-len(payload) % 8)
        head = struct.pack("<IQHH", len(payload), number, TYPES[letter], 0)
        checksum = crc32c(file.salt + head + payload + padding)
        out.extend(b"TDBF" + head + struct.pack("<I", checksum) + payload + padding)
        number += 1
        return begin, len(out) - begin

    for frame in file.of(*"SWVDE"):
        append(frame.letter, frame.payload)
    index = b"".join(frame.payload for frame in file.of("I"))
    first_rows = [entry[5] for entry in struct.iter_unpack("<4B3IQII", index)]
    pages: list[StoredPage] = []
    for frame, first_row in zip(file.of("P"), first_rows, strict=True):
        pages += change(_stored_page(frame.payload, first_row))
    pages_at, entries = len(out), b""
    for page in sorted(pages, key=lambda page: (page.kind, page.tensor, page.first_row)):
        payload, table_bytes = _payload(page, file.salt)
        place = (page.kind, 0, 0, 0, page.tensor, page.first_row, page.rows)
        entries += struct.pack("<4B3IQII", *place, *append("P", payload), table_bytes)
    index_at, index_bytes = append("I", entries)
    [footer] = file.of("F")
    places = struct.unpack_from("<5Q", footer.payload)
    places = (*places[:2], pages_at, index_at, index_bytes)
    append("F", struct.pack("<5Q", *places) + footer.payload[40:])
    path.write_bytes(out)
