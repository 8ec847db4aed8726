"""How long the original client library takes to read what it wrote.

    python benchmarks/python/original_store.py                    # both measurements, of full size
    python benchmarks/python/original_store.py --quick            # small, to see that it runs
    python benchmarks/python/original_store.py --ours build/bench/benchmarks/cpp/smdebug_read

Two runs are made with the library's own writer, in a temporary directory: one of 2,000 steps with
tensors of 256 floats, of which all values of one are read; and one with a million entries (2,000
steps of 500 tensors), which is opened. Times are those of the library's reader (`create_trial` to
the first answer, and `Tensor.values`); it pays one second for the end of every training that it
opens, which is told beside. `--ours` reads the same directories with traindbg.

Needs an environment with the library: requirements/original.txt, or `tools/setup_original.sh`,
which prints the path of such a Python.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")

import numpy as np


def make_run(directory: Path, steps: int, tensors: int, elements: int) -> float:
    """Writes a run of one worker with the library; seconds it took."""
    from smdebug.core.access_layer import training_has_ended
    from smdebug.core.collection_manager import CollectionManager
    from smdebug.core.modes import ModeKeys
    from smdebug.core.writer import FileWriter

    began = time.perf_counter()
    manager = CollectionManager()
    manager.get("all").include(".*")
    manager.set_num_workers(1)
    manager.export(str(directory), "worker_0_collections.json")
    values = np.random.default_rng(7).standard_normal((tensors, elements)).astype(np.float32)
    for step in range(steps):
        writer = FileWriter(str(directory), worker="worker_0", step=step, mode=ModeKeys.TRAIN)
        for index in range(tensors):
            writer.write_tensor(
                tdata=values[index], tname=f"t/{index}", mode=ModeKeys.TRAIN, mode_step=step
            )
        writer.close()
    training_has_ended(str(directory))
    return time.perf_counter() - began


def read_run(directory: Path, *, values: bool) -> dict[str, Any]:
    """Opens the run with the library, in this process; seconds by kind."""
    from smdebug.trials import create_trial

    began, began_cpu = time.perf_counter(), time.process_time()
    trial = create_trial(str(directory))
    names = trial.tensor_names()
    steps = trial.steps()
    out: dict[str, Any] = {"open_seconds": time.perf_counter() - began}
    out["open_cpu_seconds"] = time.process_time() - began_cpu
    # The library sleeps for a second when it first sees that a training has ended.
    out["of_these_asleep"] = 1.0
    out["names"], out["steps"] = len(names), len(steps)
    if values:
        began, began_cpu = time.perf_counter(), time.process_time()
        found = trial.tensor(names[0]).values()
        out["values_seconds"] = time.perf_counter() - began
        out["values_cpu_seconds"] = time.process_time() - began_cpu
        out["values"] = len(found)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    parser.add_argument("--ours", help="the program smdebug_read, to read the same runs")
    parser.add_argument("--only", choices=("values", "open"), help="one of the measurements")
    parser.add_argument("--read", nargs=2, metavar=("RUN", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read_run(Path(options.read[0]), values=options.read[1] == "values")))
        return 0
    shapes = {"values": (2000, 8, 256), "open": (2000, 500, 1)}
    if options.quick:
        shapes = {"values": (50, 8, 256), "open": (50, 20, 1)}
    for kind, (steps, tensors, elements) in shapes.items():
        if options.only not in (None, kind):
            continue
        with tempfile.TemporaryDirectory() as place:
            run = Path(place) / "run"
            seconds = make_run(run, steps, tensors, elements)
            print(f"{kind}: {steps} steps of {tensors} tensors of {elements} floats")
            print(f"  written by the original in {seconds:.2f} s", flush=True)
            command = [sys.executable, __file__, "--read", str(run), kind]
            for _ in range(1 if kind == "open" else 3):  # a process each: nothing is remembered
                told = subprocess.run(command, capture_output=True, text=True, check=True)
                print(f"  original: {told.stdout.strip().splitlines()[-1]}", flush=True)
            if options.ours:
                for _ in range(3):
                    told = subprocess.run(
                        [options.ours, str(run), "t/0"], capture_output=True, text=True, check=True
                    )
                    print(f"  traindbg: {told.stdout.strip()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
