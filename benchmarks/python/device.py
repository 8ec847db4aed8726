"""How fast are statistics taken on a GPU, beside one pass of PyTorch's own over the same memory?

    python benchmarks/python/device.py          # needs a CUDA device

Printed are, for tensors of one type at a time, the bytes that the kernel reads in a second and
those of `torch.sum`, which reads them once as well; then what many tensors cost the host, one by
one (as activations come) and in one call (as parameters and gradients do). GPU times are between
two events, the median of `--rounds`; host times are of the calls alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64)


class _Recording:
    """A session that takes statistics of everything at every step."""

    def __init__(self) -> None:
        plan = {
            "schema_version": 1,
            "requirements": [
                {
                    "collection": name,
                    "mode": "train",
                    "what": what,
                    "schedule": {"every": 1},
                    "for": "user",
                }
                for name, what in (
                    ("weights", ["statistics"]),
                    ("activations", ["statistics", "units"]),
                )
            ],
        }
        self.session = _core.Session(tempfile.mkdtemp() + "/run", json.dumps(plan))
        self.deferred = Deferred(self.session)

    def ids(self, tensors: list[torch.Tensor], role: str, activation: str = "none") -> list[int]:
        return [
            self.session.register_tensor(
                f"{role}/{id(tensor)}/{number}", role, activation=activation, dtype="float32"
            )
            for number, tensor in enumerate(tensors)
        ]

    def end_step(self) -> None:
        self.deferred.drain()
        self.session.end_step()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="default: 15")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("device.py: PyTorch finds no CUDA device here")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}\n")

    begin = time.perf_counter()
    recording = _Recording()
    small = torch.ones(8, device="cuda")
    torch.cuda.synchronize()
    recording.deferred.add_tensor(_core.TRAIN, recording.ids([small], "weight")[0], small)
    recording.end_step()
    print(f"first use, with the compilation of the kernels: {time.perf_counter() - begin:.2f} s\n")

    print("| type | size | statistics, GB/s | torch.sum, GB/s |\n|---|---|---|---|")
    for dtype in TYPES:
        for megabytes in (512, 32, 4):
            x = torch.randn(megabytes * (1 << 20) // dtype.itemsize, device="cuda").to(dtype)
            number = recording.ids([x], "weight")[0]

            def look(x: torch.Tensor = x, number: int = number) -> None:
                recording.deferred.add_tensor(_core.TRAIN, number, x)

            ours = _both(look, recording, options.rounds)[1]
            theirs = _both(x.sum, recording, options.rounds)[1]
            rate = x.numel() * x.element_size() / 1e9
            print(f"| {dtype} | {megabytes} MiB | {rate / ours:.0f} | {rate / theirs:.0f} |")

    print("\n| many tensors | host, µs a tensor | GPU, ms |\n|---|---|---|")
    for count, size in ((200, 64), (200, 512_000), (62, 179_200)):
        tensors = [
            torch.randn(4, 16, size // 64, device="cuda").unsqueeze(-1) for _ in range(count)
        ]
        ids = recording.ids(tensors, "activation", "relu")

        def one_by_one(ids: list[int] = ids, tensors: list[torch.Tensor] = tensors) -> None:
            for number, tensor in zip(ids, tensors, strict=True):
                recording.deferred.add_tensor(_core.TRAIN, number, tensor)

        def together(ids: list[int] = ids, tensors: list[torch.Tensor] = tensors) -> None:
            recording.deferred.add_batch(_core.TRAIN, ids, tensors, list(range(len(ids))))

        for name, work in (("one by one", one_by_one), ("in one call", together)):
            host, gpu = _both(work, recording, options.rounds)
            print(
                f"| {count} of {size} floats, {name} | {1e6 * host / count:.2f} | {1e3 * gpu:.3f} |"
            )


def _both(work: Callable[[], Any], recording: _Recording, rounds: int) -> tuple[float, float]:
    host, gpu = [], []
    for _ in range(rounds + 2):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        start = time.perf_counter()
        work()
        host.append(time.perf_counter() - start)
        end.record()
        end.synchronize()
        gpu.append(begin.elapsed_time(end) / 1e3)
        recording.end_step()
    return statistics.median(host[2:]), statistics.median(gpu[2:])


if __name__ == "__main__":
    main()
