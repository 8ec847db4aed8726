#!/usr/bin/env python3
"""Runs clang-tidy over the core within a time budget, and never twice over the same text.

    tools/run_tidy.py [--build DIR] [--budget SECONDS] [--jobs N] [FILE ...]

clang-tidy needs several seconds a file, so a clean result is remembered in .cache/tidy under the
hash of the preprocessed file and of .clang-tidy: a file is looked at again only when something it
sees has changed. With a budget, files changed since the main branch come first, then those at the
bottom of the layers; what did not fit is counted and said. Exits 1 when a file has a finding.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def changed_files() -> set[Path]:
    """Files that differ from where the main branch was, committed or not; empty without git."""
    changed: set[Path] = set()
    for base in ("origin/main...HEAD", "HEAD"):
        result = subprocess.run(
            ["git", "-C", str(ROOT), "diff", "--name-only", base],
            check=False,
            capture_output=True,
            text=True,
        )
        if result.returncode == 0:
            changed |= {ROOT / line for line in result.stdout.splitlines()}
    return changed


def layer_order() -> list[str]:
    lines = (ROOT / "src/traindbg/layers.txt").read_text().splitlines()
    return [line.split(":", 1)[0] for line in lines if ":" in line and not line.startswith("#")]


def compile_commands(build: Path) -> dict[Path, list[str]]:
    """Source file to its compiler arguments, for the sources of the core."""
    entries = json.loads((build / "compile_commands.json").read_text())
    commands: dict[Path, list[str]] = {}
    for entry in entries:
        file = Path(entry["file"])
        if ROOT / "src" in file.parents:
            commands[file] = shlex.split(entry["command"])
    return commands


def fingerprint(command: list[str], build: Path) -> str | None:
    """Hash of all that clang-tidy would see, or None when the file does not preprocess.

    Without line markers: the same text is known in every checkout, and when only lines move.
    """
    arguments = [a for a in command if a not in ("-c", "-o")]
    if "ccache" in Path(arguments[0]).name:
        arguments = arguments[1:]
    arguments = ["clang++", *(a for a in arguments[1:] if not a.endswith(".o")), "-E", "-P", "-w"]
    result = subprocess.run(arguments, cwd=build, check=False, capture_output=True)
    if result.returncode != 0:
        return None
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    digest.update(result.stdout)
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev", help="a configured build")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds to spend")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("files", type=Path, nargs="*", help="these only")
    arguments = parser.parse_args()
    if not shutil.which("clang-tidy") or not shutil.which("clang++"):
        print("tidy: clang-tidy and clang++ are needed", file=sys.stderr)
        return 1
    commands = compile_commands(arguments.build)
    order = layer_order()
    changed = changed_files()
    files = [file.resolve() for file in arguments.files] or sorted(
        commands,
        key=lambda f: (
            f not in changed,
            order.index(f.relative_to(ROOT / "src/traindbg").parts[0]),
            f,
        ),
    )
    cache = ROOT / ".cache" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + arguments.budget

    def look(file: Path) -> tuple[str, str]:
        """("clean" | "known" | "late" | "found", what clang-tidy said)."""
        key = fingerprint(commands[file], arguments.build)
        if key and (cache / key).exists():
            return "known", ""
        if time.monotonic() > deadline:
            return "late", ""
        result = subprocess.run(
            [
                "clang-tidy",
                "--quiet",
                "--extra-arg=-Wno-unknown-warning-option",  # the build's compiler may be another
                "-p",
                str(arguments.build),
                str(file),
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if result.returncode != 0:
            return "found", result.stdout or result.stderr
        if key:
            (cache / key).touch()
        return "clean", ""

    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(look, files))
    for _, text in results:
        if text:
            print(text)
    count = {
        state: sum(1 for s, _ in results if s == state)
        for state in ("clean", "known", "late", "found")
    }
    late = (
        f", {count['late']} not looked at (budget of {arguments.budget:.0f} s spent)"
        if count["late"]
        else ""
    )
    print(
        f"tidy: {count['clean'] + count['known']} of {len(files)} files clean"
        f" ({count['known']} known from before), {count['found']} with findings{late}"
    )
    return 1 if count["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
