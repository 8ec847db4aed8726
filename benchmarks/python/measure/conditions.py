"""Under which conditions something was measured."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import NamedTuple

from measure.programs import ROOT
from measure.recording import default_rules, original_rules


class Conditions(NamedTuple):
    date: str
    version: str  # of traindbg
    commit: str  # of the checkout; empty without git
    command: str
    rules: int  # default ones
    original_rules: int
    seeds: tuple[int, ...]
    jobs: int
    seconds: float  # of measuring, all calls together
    machine: str
    python: str
    torch: str


def conditions(command: str, seeds: list[int], jobs: int, seconds: float) -> Conditions:
    import torch

    import traindbg

    return Conditions(
        date=datetime.date.today().isoformat(),
        version=traindbg.__version__,
        commit=commit(),
        command=command,
        rules=len(default_rules()),
        original_rules=len(original_rules()),
        seeds=tuple(seeds),
        jobs=jobs,
        seconds=round(seconds, 1),
        machine=machine(),
        python=platform.python_version(),
        torch=torch.__version__,
    )


def commit() -> str:
    """Short, with a "+" where tracked files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    name = git("rev-parse", "--short", "HEAD")
    is_changed = name and git("status", "--porcelain", "--untracked-files=no")
    return f"{name}+" if is_changed else name


def machine() -> str:
    """Such as "AMD EPYC, 2 CPUs"."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.machine()
    return f"{name}, {len(os.sched_getaffinity(0))} CPUs"
