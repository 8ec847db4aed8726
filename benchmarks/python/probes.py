"""What a probe costs (`td.watch(model, probe=True)`): a fork, and forward passes in the child.

    python benchmarks/python/probes.py

Two small nets are trained with probes at each step that may have one, in place of six at most, and
the time that the training waits for each is printed beside that of its steps.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import traindbg as td
from traindbg.hooks.torch.probes import probe as probes

STEPS = 60


def measure(model: nn.Module, x: torch.Tensor) -> tuple[list[float], list[float]]:
    """Milliseconds of each probe, and of the steps without one."""
    waited, steps = [], []
    apart = probes.apart

    def timed(work):
        begin = time.perf_counter()
        try:
            return apart(work)
        finally:
            waited.append(1e3 * (time.perf_counter() - begin))

    probes.apart, probes._MOST, probes._TIMES = timed, STEPS, 0.0
    y = torch.randint(0, 10, (len(x),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            td.watch(model, optimizer, run_dir=Path(folder) / "run", supervise=False, probe=True),
        ):
            while len(steps) < STEPS:
                for inputs, labels in batches:
                    before, begin = len(waited), time.perf_counter()
                    optimizer.zero_grad()
                    F.cross_entropy(model(inputs), labels).backward()
                    optimizer.step()
                    took = 1e3 * (time.perf_counter() - begin)
                    if len(waited) == before:
                        steps.append(took)
    finally:
        probes.apart = apart
    return waited, steps


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    torch.manual_seed(0)
    nets = {
        "two layers, 48-256-10": (
            nn.Sequential(nn.Linear(48, 256), nn.ReLU(), nn.Linear(256, 10)),
            torch.randn(1024, 48),
        ),
        "two convolutions, 16x16": (
            nn.Sequential(
                *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
                *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()),
                *(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)),
            ),
            torch.randn(1024, 1, 16, 16),
        ),
    }
    print(f"{'':26}probes  min, median, max (ms)   step, median (ms)")
    for name, (model, x) in nets.items():
        waited, steps = measure(model, x)
        least, middle, most = min(waited), statistics.median(waited), max(waited)
        print(
            f"{name:26}{len(waited):6}  {least:6.1f} {middle:6.1f} {most:6.1f}"
            f"        {statistics.median(steps):6.2f}"
        )


if __name__ == "__main__":
    main()
