"""Does the memory of a watched training grow?

Trains a small network for many steps, watched and plain, each in a process of its own, and prints
the resident memory after 1,000 steps, 3,000, 10,000 and so on.

    python benchmarks/python/memory.py                  # 100,000 steps
    python benchmarks/python/memory.py --steps 10000
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# What is captured beside nothing at all.
CONFIGS: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "default rules": {},
    "all statistics, every step": {
        "rules": [],
        "collect": ["weights", "biases", "gradients", "inputs", "outputs", "activations"],
    },
    "all whole tensors, every 10 steps": {
        "rules": [],
        "raw": ["weights", "biases", "gradients", "inputs", "outputs", "activations"],
        "every": 10,
    },
    "flight recorder of 20 steps": {"rules": [], "flight_recorder": 20},
}


def _resident() -> int:
    """Bytes of this process that are in memory and not of files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def _worker(config: str, steps: int) -> dict[str, int]:
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(16, 32), torch.randint(0, 10, (16,))
    directory = tempfile.mkdtemp(prefix="traindbg-bench-")
    settings = CONFIGS[config]
    if settings is not None:
        import traindbg as td

        td.watch(model, optimizer, run_dir=f"{directory}/run", supervise=False, **settings)
    found = {}
    marks = {m * 10**n for n in range(3, 12) for m in (1, 3)} | {steps}
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step in marks:
            found[str(step)] = _resident()
    shutil.rmtree(directory, ignore_errors=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--steps", type=int, default=100_000, help="default: 100000")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_worker(options.worker[0], int(options.worker[1]))), flush=True)
        os._exit(0)  # the directory is gone: there is nothing to close
    marks: list[str] = []
    for config in CONFIGS:
        command = [sys.executable, __file__, "--worker", config, str(options.steps)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRAINDBG_LOG": "quiet"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"memory.py: {config} failed:\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout)
        if not marks:
            marks = list(found)
            print("| captured | " + " | ".join(f"{mark} steps" for mark in marks) + " |")
            print("|---" * (len(marks) + 1) + "|")
        cells = (f"{found[mark] / 2**20:.1f} MiB" for mark in marks)
        print(f"| {config} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
