"""How many bytes a run takes for each (tensor, step), in a real training.

    python benchmarks/python/store_bytes.py                                 # the digits CNN
    python benchmarks/python/store_bytes.py --model resnet18_digits --steps 200

Trains a model of `models.py` on scikit-learn's digits and records, at every step, the statistics
of every weight, bias, gradient, input, output and activation; once without and once with
histograms of all of them. Bytes are those of the worker's files, divided by the (tensor, step)
entries in them: unsealed as the log is at the last step, sealed as the training leaves it. What of
a sealed part goes into which column is read from its pages as docs/format/native.md describes
them. Sizes do not depend on the machine's load, and hardly on the machine.

A part is sealed at 16 MB of log, here as anywhere: the training ends before, so that the run is one
part and both figures are of the same steps. Needs PyTorch, scikit-learn and an installed traindbg.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models import Training

COLLECTIONS = ["weights", "biases", "gradients", "inputs", "outputs", "activations"]
# A part ends at 16 MiB; some steps are left for the rest of a batch.
MOST_LOG_BYTES = 15 << 20
KINDS = ["steps", "statistics", "scalars", "classes", "whole tensors", "histograms"]
COLUMNS = {
    0: "row",
    **dict(enumerate(("min", "max", "mean", "std", "l1", "l2"), start=1)),
    **dict(
        enumerate(
            ("count", "NaNs", "+inf", "-inf", "zeros", "units", "inactive", "low", "high"), start=16
        )
    ),
    32: "value",
    40: "lengths",
    41: "bytes",
    42: "histogram",
}
# Of a page beside its columns: the frame's header and padding, its table, its entry in the index.
OVERHEAD = "page"


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def bins_of(log: bytes, every: int = 20) -> float:
    """Bins that are not empty, per histogram: of every 20th step."""
    at = steps = bins = histograms = 0
    while at < len(log):
        length, _, number = struct.unpack_from("<IQH", log, at + 4)
        begin, end = at + 24, at + 24 + length
        at += (24 + length + 7) // 8 * 8
        if number != 4:
            continue
        steps += 1
        if steps % every != 0:
            continue
        _, begin = _varint(log, begin + 1)
        _, begin = _varint(log, begin)
        begin += 16
        for _ in range(3):
            _, begin = _varint(log, begin)
        while begin < end:
            section, begin = _varint(log, begin)
            size, begin = _varint(log, begin)
            if section == 6:
                count, place = _varint(log, begin)
                histograms += count
                for _ in range(count):
                    _, place = _varint(log, place)
                for _ in range(count):
                    filled, place = _varint(log, place)
                    bins += filled
                    for _ in range(2 * filled):
                        _, place = _varint(log, place)
            begin += size
    return bins / max(histograms, 1)


def columns_of(segment: bytes) -> tuple[Counter[tuple[str, str]], int]:
    """Bytes of a sealed part by kind of page and column, and its rows of statistics."""
    sizes: Counter[tuple[str, str]] = Counter()
    entries = at = 0
    while at < len(segment):
        magic, length, _, number = struct.unpack_from("<4sIQH", segment, at)
        if magic != b"TDBF":
            raise ValueError(f"no frame at {at}")
        frame = (24 + length + 7) // 8 * 8
        if number != 10:
            sizes["file", "all else"] += 0 if number == 11 else frame
            at += frame
            continue
        kind = segment[at + 24 + 8]
        _, place = _varint(segment, at + 24 + 9)
        rows, place = _varint(segment, place)
        count, place = _varint(segment, place)
        columns = 0
        for _ in range(count):
            column = segment[place]
            _, place = _varint(segment, place + 2)
            stored, place = _varint(segment, place)
            place += 4
            columns += stored
            sizes[KINDS[kind], COLUMNS.get(column, "steps")] += stored
        sizes[KINDS[kind], OVERHEAD] += frame - columns + 32
        if kind == KINDS.index("statistics"):
            entries += rows
        at += frame
    return sizes, entries


def _digits(name: str) -> Training:
    """The model of that name, on the digits instead of noise, where it is given that elsewhere."""
    import torch
    from models import ResNet18, Training, _digits_batches, make

    if name != "resnet18_digits":
        return make(name)
    torch.manual_seed(0)
    model = ResNet18()
    batches = [
        (torch.nn.functional.interpolate(x, size=16).expand(-1, 3, -1, -1).contiguous(), y)
        for x, y in _digits_batches(32)
    ]
    return Training(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), batches)


def measure(name: str, steps: int, *, histograms: bool) -> dict[str, Any]:
    """Trains and records; sizes in bytes per entry."""
    import torch
    from torch.nn import functional

    import traindbg as td

    torch.set_num_threads(1)
    training = _digits(name)
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        watcher = td.watch(
            training.model,
            training.optimizer,
            run_dir=str(run),
            supervise=False,
            rules=[],
            collect=COLLECTIONS,
            every=1,
            histograms=COLLECTIONS if histograms else [],
        )
        log = run / "w0000" / "000000.log"
        done = 0
        for done in range(1, steps + 1):
            x, y = training.batch(done)
            training.optimizer.zero_grad()
            loss = functional.cross_entropy(training.model(x), y)
            loss.backward()
            training.optimizer.step()
            if done % 10 == 0:
                time.sleep(0.02)  # the writer's thread puts them into the file every 10 ms
                if log.stat().st_size > MOST_LOG_BYTES:
                    break
        time.sleep(1)
        unsealed = log.read_bytes()
        watcher.detach()
        deadline = time.monotonic() + 60
        segments = sorted(run.glob("w0000/*.seg"))
        while not segments and time.monotonic() < deadline:
            time.sleep(0.1)
            segments = sorted(run.glob("w0000/*.seg"))
        if len(segments) != 1 or log.exists():
            raise RuntimeError(f"{run}: more than one part, or not sealed")
        data = segments[0].read_bytes()
        sizes, entries = columns_of(data)
        return {
            "model": name,
            "histograms": histograms,
            "steps": done,
            "loss": float(loss.detach()),
            "tensors": round(entries / done, 1),
            "entries": entries,
            "bins": bins_of(unsealed),
            "unsealed": len(unsealed) / entries,
            "sealed": len(data) / entries,
            "columns": {
                f"{kind}: {column}": size / entries
                for (kind, column), size in sorted(sizes.items(), key=lambda each: -each[1])
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        action="append",
        help="digits_cnn (default), resnet18_digits",
    )
    parser.add_argument("--steps", type=int, default=700, help="at most (default: 700)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    for name in options.model or ["digits_cnn"]:
        for histograms in (False, True):
            result = measure(name, options.steps, histograms=histograms)
            if options.json:
                print(json.dumps(result), flush=True)
                continue
            words = f"with histograms ({result['bins']:.1f} bins each)" if histograms else "without"
            print(f"{name}, {result['steps']} steps of {result['tensors']:g} tensors, {words}:")
            print(f"  bytes per (tensor, step): unsealed {result['unsealed']:.1f},", end=" ")
            print(f"sealed {result['sealed']:.1f} (last loss {result['loss']:.3f})")
            for column, size in result["columns"].items():
                if size >= 0.05:
                    print(f"    {column:<28} {size:6.2f}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
