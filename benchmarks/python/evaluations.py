"""What does it cost that evaluations without a loss have one computed?

A small CNN is trained on scikit-learn's digits through a DataLoader and evaluated after each pass
by counting hits, in processes that watch it and in others that do not, in turn; and in some that
are watched and compute the loss in their evaluations themselves. Of the training the time per batch
tells what it costs that the loader's batches are heard; of the evaluations, what the computed
losses and what is recorded of them do. The first passes of each process are left out: what is what
is found out there.

    python benchmarks/python/evaluations.py
    python benchmarks/python/evaluations.py --rounds 3 --passes 8   # quick

Printed are the least, the median and the largest of the rounds' medians, in microseconds per batch,
and the ratio of each round's processes to the plain one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

_BATCH = 32
_FIRST = 3  # passes that are left out
_KINDS = ("plain", "watched", "watched, own loss")


def _child(kind: str, passes: int) -> None:
    """Prints the medians of both times as JSON."""
    import torch
    from models import DigitsCnn
    from sklearn.datasets import load_digits
    from torch.nn import functional
    from torch.utils.data import DataLoader, TensorDataset

    import traindbg as td

    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    trained = DataLoader(TensorDataset(x[:1500], y[:1500]), _BATCH, shuffle=True, drop_last=True)
    evaluated = DataLoader(TensorDataset(x[1500:], y[1500:]), _BATCH, drop_last=True)
    model = DigitsCnn()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run_dir = tempfile.mkdtemp(prefix="traindbg-evaluations-")
    watcher = (
        td.watch(model, optimizer, run_dir=run_dir, supervise=False) if kind != _KINDS[0] else None
    )
    times: dict[str, list[float]] = {"training": [], "evaluation": []}
    for number in range(passes):
        model.train()
        begin = time.perf_counter()
        for xb, yb in trained:
            optimizer.zero_grad()
            functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
        end = time.perf_counter()
        if number >= _FIRST:
            times["training"].append((end - begin) / len(trained))
        model.eval()
        hits = 0
        begin = time.perf_counter()
        with torch.no_grad():
            for xb, yb in evaluated:
                output = model(xb)
                if kind == _KINDS[2]:
                    functional.cross_entropy(output, yb)
                hits += int((output.argmax(1) == yb).sum())
        end = time.perf_counter()
        if number >= _FIRST:
            times["evaluation"].append((end - begin) / len(evaluated))
    found = {kind: statistics.median(values) * 1e6 for kind, values in times.items()}
    if watcher is not None:
        watcher.detach()
        losses = td.Run(run_dir).scalars("loss/cross_entropy", "eval")[1]
        found["losses"] = len(losses) / len(evaluated)
    print(json.dumps(found))


def _run(kind: str, passes: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", kind, "--passes", str(passes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _line(what: str, values: list[float], form: str) -> str:
    least, middle, most = min(values), statistics.median(values), max(values)
    return f"{what:48} {least:{form}} / {middle:{form}} / {most:{form}}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="default: 7")
    parser.add_argument("--passes", type=int, default=15, metavar="N", help="default: 15")
    parser.add_argument("--child", choices=_KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.passes <= _FIRST:
        parser.error(f"--passes: more than {_FIRST}, the first ones are left out")
    if options.child:
        _child(options.child, options.passes)
        return 0
    rounds: list[dict[str, dict[str, float]]] = []
    for number in range(options.rounds):
        order = _KINDS if number % 2 == 0 else _KINDS[::-1]
        rounds.append({kind: _run(kind, options.passes) for kind in order})
        print(f"{number + 1}/{options.rounds}", file=sys.stderr)
    print(f"evaluations that had losses: {rounds[0]['watched']['losses']:.0f} of {options.passes}")
    for what in ("training", "evaluation"):
        for kind in _KINDS:
            values = [each[kind][what] for each in rounds]
            print(_line(f"{what}, {kind}, us per batch", values, "6.1f"))
        for kind in _KINDS[1:]:
            ratios = [each[kind][what] / each[_KINDS[0]][what] for each in rounds]
            print(_line(f"{what}, {kind}, ratio", ratios, "6.3f"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
