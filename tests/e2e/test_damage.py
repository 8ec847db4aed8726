"""What is damaged or missing in a run is told wherever data are read; `verify` misses nothing."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from trainings import clean_environment, traindbg, traindbg_json

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden" / "native_v1"
STEPS, STATISTICS, SCALARS = 0, 1, 2  # kinds of pages
FORMATS = ("csv", "jsonl", "parquet", "npz", "safetensors", "tensorboard", "smdebug")
READ_TABLE = """
import sys, pyarrow, traindbg as td
run = td.Run(sys.argv[1])
rows = pyarrow.table(run.table("scalars")).num_rows
print(rows, len(run.damage))
"""
READ_VALUES = """
import sys, traindbg as td
run = td.Run(sys.argv[1])
print(len(run["loss"].values()), len(run.damage))
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "run"))


def page(segment: bytes, kind: int) -> int:
    """Where the first page of a kind begins."""
    at = 0
    while at < len(segment):
        magic, size, _, frame_type = struct.unpack_from("<4sIQH", segment, at)
        assert magic == b"TDBF"
        if frame_type == 10 and segment[at + 24 + 8] == kind:
            return at
        at += 24 + (size + 7) // 8 * 8
    raise AssertionError(f"no page of kind {kind}")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def damage_page(run: Path, kind: int) -> int:
    """Flips a bit in the payload of the first page of a kind; gives the page's place."""
    segment = run / "w0000" / "000000.seg"
    at = page(segment.read_bytes(), kind)
    flip(segment, at + 24 + 12)
    return at


def python(code: str, run: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, run],
        capture_output=True,
        text=True,
        check=True,
        env=clean_environment(),
        timeout=120,
    )


class TestDamageThatIsMetWhileReading:
    @pytest.mark.parametrize("kind", [STEPS, SCALARS])
    def test_get_tells_what_it_left_out(self, run: Path, kind: int) -> None:
        whole = traindbg("get", run, "loss", "--csv").stdout.splitlines()
        at = damage_page(run, kind)
        result = traindbg("get", run, "loss", "--csv")
        assert result.returncode == 0
        assert 1 < len(result.stdout.splitlines()) < len(whole)
        [told] = result.stderr.splitlines()
        assert "000000.seg" in told
        assert re.search(rf"byte {at}: .* does not match; lost: ", told)
        [place] = traindbg_json("get", run, "loss")["damage"]
        assert place["file"].endswith("000000.seg")
        assert place["offset"] == at

    def test_get_of_a_whole_run_says_nothing(self, run: Path) -> None:
        result = traindbg("get", run, "loss", "--csv")
        assert result.stderr == ""
        assert traindbg_json("get", run, "loss")["damage"] == []

    @pytest.mark.parametrize("format_name", FORMATS)
    def test_an_export_tells_what_it_left_out(
        self, run: Path, tmp_path: Path, format_name: str
    ) -> None:
        at = damage_page(run, STEPS)
        result = traindbg(
            "export", run, "--format", format_name, "--to", tmp_path / "out", "--json"
        )
        assert result.returncode == 0, result.stderr
        [place] = json.loads(result.stdout)["damage"]
        assert place["file"].endswith("000000.seg")
        assert place["offset"] == at
        assert re.search(rf"000000.seg, byte {at}: .* does not match; lost: ", result.stderr)

    def test_an_export_without_a_readable_tensor_says_why(self, run: Path, tmp_path: Path) -> None:
        damage_page(run, STEPS)
        (run / "w0000" / "000001.log").unlink()
        to = tmp_path / "out"
        result = traindbg("export", run, "--format", "npz", "--to", to)
        assert result.returncode == 2
        assert "no whole tensor that can be read" in result.stderr
        assert "traindbg verify" in result.stderr

    @pytest.mark.parametrize("code", [READ_TABLE, READ_VALUES], ids=["table", "values"])
    def test_python_warns_once_and_keeps_it(self, run: Path, code: str) -> None:
        whole = python(code, run)
        assert whole.stderr == ""
        at = damage_page(run, STEPS)
        result = python(code, run)
        rows, places = result.stdout.split()
        assert 0 < int(rows) < int(whole.stdout.split()[0])
        assert places == "1"
        assert result.stderr.count("DamageWarning") == 1, result.stderr
        assert re.search(rf"000000.seg, byte {at}: .* does not match; lost: ", result.stderr)

    def test_check_sends_to_the_verb_that_names_it(self, run: Path) -> None:
        at = damage_page(run, STATISTICS)
        assert "traindbg verify names it" in traindbg("check", run).stderr
        verified = traindbg("verify", run)
        assert verified.returncode == 1
        assert f"000000.seg, byte {at}: " in verified.stdout


@pytest.fixture
def recorded(run: Path) -> Path:
    """The golden run with the JSON files that this version writes."""
    (run / "RUN.json").unlink()
    (run / "expected.json").unlink()
    imported = run.parent / "imported"
    log = run.parent / "log"
    traindbg("export", GOLDEN, "--format", "tensorboard", "--to", log)
    assert traindbg("import", log, "--to", imported).returncode == 0
    for name in ("RUN.json", "END.json"):
        shutil.copy(imported / name, run / name)
    return run


class TestVerify:
    def test_a_whole_run(self, recorded: Path) -> None:
        result = traindbg("verify", recorded)
        assert result.returncode == 0, result.stdout
        assert "every byte of the record is as it was written" in result.stdout

    def test_every_byte_of_every_file(self, recorded: Path) -> None:
        for path in sorted(recorded.rglob("*")):
            if not path.is_file() or path.name == "lock":
                continue
            whole = path.read_bytes()
            for at in {*range(0, len(whole), 1 + len(whole) // 12), len(whole) - 1}:
                flip(path, at)
                result = traindbg("verify", recorded)
                assert result.returncode == 1, (path, at, result.stdout)
                assert str(path) in result.stdout
                path.write_bytes(whole)

    def test_a_file_without_a_checksum_is_named(self, run: Path) -> None:
        result = traindbg("verify", run)
        assert result.returncode == 0
        assert "RUN.json: has no checksum: not verified" in result.stdout
        assert "every byte" not in result.stdout
        [place] = traindbg_json("verify", run)["unverified"]
        assert place["file"].endswith("RUN.json")

    def test_the_first_part_is_gone(self, recorded: Path) -> None:
        (recorded / "w0000" / "000000.seg").unlink()
        result = traindbg("verify", recorded)
        assert result.returncode == 1
        assert "part 0 is missing" in result.stdout

    def test_the_last_part_is_gone(self, recorded: Path) -> None:
        (recorded / "w0000" / "000001.log").unlink()
        result = traindbg("verify", recorded)
        assert result.returncode == 0
        assert "worker 0: not closed: the last steps may be missing" in result.stdout
        assert "every byte" not in result.stdout
        assert traindbg_json("verify", recorded)["unclosed_workers"] == [0]

    def test_all_parts_of_a_worker_are_gone(self, recorded: Path) -> None:
        (recorded / "w0000" / "000000.seg").unlink()
        (recorded / "w0000" / "000001.log").unlink()
        result = traindbg("verify", recorded)
        assert result.returncode == 1
        assert "no part of what this worker recorded is there" in result.stdout

    def test_no_worker_is_there(self, recorded: Path) -> None:
        shutil.rmtree(recorded / "w0000")
        result = traindbg("verify", recorded)
        assert result.returncode == 2
        assert "no training has recorded anything" in result.stderr
        assert "every byte" not in result.stdout
