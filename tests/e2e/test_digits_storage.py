"""A disk that refuses costs the recording, never the training; damage is named, not hidden."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from forked import Server
from trainings import DIGITS, Outcome, traindbg, traindbg_json

# The digits training in a process that may not write files larger than {limit} bytes: to every
# write beyond, the kernel answers as it does on a full disk.
LIMITED = """
import resource
import runpy
import signal
import sys

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
runpy.run_path({digits!r}, run_name="__main__")
"""


@pytest.fixture
def copy(healthy: Outcome, tmp_path: Path) -> Path:
    """A copy of a healthy run, to be damaged."""
    return Path(shutil.copytree(healthy.run, tmp_path / healthy.run.name))


def part_of(run: Path) -> Path:
    """All steps of a short run that ended: sealed by its supervisor."""
    return run / "w0000" / "000000.seg"


def last_byte_of_a_statistics_page(segment: bytes | bytearray) -> int:
    """Where the largest page of statistics ends: a byte of its last column, and of nothing else."""
    page, statistics = 10, 1
    ends: list[tuple[int, int]] = []
    at = 0
    while at < len(segment):
        magic, length, _, kind = struct.unpack_from("<4sIQH", segment, at)
        assert magic == b"TDBF"
        payload = at + 24
        if kind == page and segment[payload + 8] == statistics:
            ends.append((length, payload + length - 1))
        at = payload + (length + 7) // 8 * 8
    return max(ends)[1]


class TestARunThatCannotBeWritten:
    @pytest.mark.parametrize("limit", [4096, 40_000])
    def test_a_full_disk_ends_the_recording_only(
        self, healthy: Outcome, tmp_path: Path, limit: int, forked: Server
    ) -> None:
        script = tmp_path / "limited.py"
        script.write_text(LIMITED.format(limit=limit, digits=str(DIGITS)))
        outcome = forked.run(tmp_path / "runs", script)
        assert outcome.code == 0, outcome.stderr
        assert outcome.stdout == forked.plain(DIGITS).stdout
        shown = traindbg_json("show", outcome.run)
        assert shown["damage"] == []
        # On a slow machine a part more is begun when the disk is asked again.
        assert shown["steps"].get("train", 0) < traindbg_json("show", healthy.run)["steps"]["train"]
        assert "<html" in outcome.report
        # Said once, with the file and the reason.
        lines = [line for line in outcome.stderr.splitlines() if "the disk is full" in line]
        assert len(lines) == 1, outcome.stderr
        assert "pauses" in lines[0]
        assert "File too large" in lines[0]
        assert "000000.log" in lines[0]

    def test_a_small_file_system_that_fills_up(self, tmp_path: Path, forked: Server) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
            capture_output=True,
            check=False,
        )
        if mounted.returncode != 0:
            pytest.skip("mounting a small file system needs privileges that are not here")
        try:
            outcome = forked.run(disk, DIGITS)
            assert outcome.code == 0, outcome.stderr
            assert outcome.stdout == forked.plain(DIGITS).stdout
            # One line of the training, one of the program.
            said = [line for line in outcome.stderr.splitlines() if "No space left" in line]
            assert 1 <= len(said) <= 2, outcome.stderr
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def test_a_place_that_is_no_directory_is_one_clear_line(
        self, tmp_path: Path, forked: Server
    ) -> None:
        place = tmp_path / "file"
        place.write_text("")
        outcome = forked.run(place, DIGITS, "--epochs", "2")
        assert outcome.code == 0, outcome.stderr
        assert outcome.stdout == forked.plain(DIGITS, "--epochs", "2").stdout
        ours = [line for line in outcome.stderr.splitlines() if str(place) in line]
        assert len(ours) == 1, outcome.stderr

    def test_a_read_only_directory_is_one_clear_line(self, tmp_path: Path, forked: Server) -> None:
        # Root may write anywhere but here.
        place = tmp_path if os.geteuid() != 0 else Path("/proc")
        if os.geteuid() != 0:
            tmp_path.chmod(0o555)
        outcome = forked.run(place / "runs", DIGITS, "--epochs", "2")
        assert outcome.code == 0, outcome.stderr
        assert outcome.stdout == forked.plain(DIGITS, "--epochs", "2").stdout
        ours = [line for line in outcome.stderr.splitlines() if str(place / "runs") in line]
        assert len(ours) == 1, outcome.stderr

    def test_a_run_that_is_deleted_meanwhile(self, tmp_path: Path, forked: Server) -> None:
        script = tmp_path / "deletes.py"
        script.write_text(
            "import os, runpy, shutil\n"
            f"digits = runpy.run_path({str(DIGITS)!r})\n"
            "evaluate = digits['evaluate']\n"
            "def and_delete(*arguments):\n"
            f"    shutil.rmtree({str(tmp_path / 'runs')!r}, ignore_errors=True)\n"
            "    return evaluate(*arguments)\n"
            "digits['main'].__globals__['evaluate'] = and_delete\n"
            "digits['main']()\n"
        )
        outcome = forked.run(tmp_path / "runs", script)
        assert outcome.code == 0, outcome.stderr
        assert outcome.stdout == forked.plain(DIGITS).stdout
        said = [line for line in outcome.stderr.splitlines() if line.startswith("traindbg: ")]
        assert len(said) == 1, outcome.stderr
        assert "directory is gone: what was recorded in it is lost" in said[0]
        assert "nothing is lost" not in outcome.stderr


class TestADamagedRun:
    def test_a_flipped_byte_is_named_and_the_rest_is_read(self, copy: Path) -> None:
        whole = traindbg_json("show", copy)
        assert whole["damage"] == []
        data = bytearray(part_of(copy).read_bytes())
        data[last_byte_of_a_statistics_page(data)] ^= 0xFF
        part_of(copy).write_bytes(data)
        # One column of one tensor is gone at some steps; every step is still there.
        assert traindbg_json("show", copy)["steps"] == whole["steps"]
        result = traindbg("check", copy)
        assert result.returncode == 0, result.stderr
        assert "damage in 1 place was skipped" in result.stderr
        assert traindbg_json("check", copy)["damaged_places"] == 1

    def test_a_part_that_was_cut_off_is_named_and_the_rest_is_read(self, copy: Path) -> None:
        whole = traindbg_json("show", copy)["steps"]["train"]
        data = part_of(copy).read_bytes()
        part_of(copy).write_bytes(data[: len(data) * 2 // 3 + 1])
        damaged = traindbg_json("show", copy)
        assert "000000.seg" in damaged["damage"][0]["file"]
        assert 0 < damaged["steps"]["train"] <= whole
        assert traindbg("check", copy).returncode == 0

    @pytest.mark.parametrize("name", ["RUN.json", "plan.json", "END.json", "verdict.json"])
    @pytest.mark.parametrize("content", [b"", b'{"a": ', b"\x00\xff\xfe", b"[]", b"{}"])
    def test_a_broken_side_file_never_crashes(self, copy: Path, name: str, content: bytes) -> None:
        (copy / name).write_bytes(content)
        for verb in ("show", "check", "report"):
            result = traindbg(verb, copy)
            assert result.returncode in (0, 2), (verb, result.stderr)
            if result.returncode == 2:
                assert name in result.stderr
                assert len(result.stderr.strip().splitlines()) <= 2

    def test_an_empty_log_could_not_be_judged(self, copy: Path) -> None:
        part_of(copy).write_bytes(b"")
        result = traindbg("check", copy)
        assert result.returncode == 2
        assert "not checked" in result.stdout + result.stderr

    def test_a_directory_that_is_no_run_is_one_clear_line(self, tmp_path: Path) -> None:
        for verb in ("show", "check", "report"):
            result = traindbg(verb, tmp_path)
            assert result.returncode == 2
            assert str(tmp_path) in result.stderr
            assert len(result.stderr.strip().splitlines()) <= 2
