"""What does it cost that evaluations without a loss have one computed?

A small CNN is trained on scikit-learn's digits through a DataLoader and evaluated after each pass
by counting hits: in a process that watches it, in one that does not, and in one that is watched and
computes the loss in its evaluations itself. The three take turns, a pass at a time, so that each
pass is compared with one of the same turn. Of the training the time per batch tells
what it costs that the loader's batches are heard; of the evaluations, what the computed losses and
what is recorded of them do. The first passes are left out: what is what is found out there.

    python benchmarks/python/evaluations.py
    python benchmarks/python/evaluations.py --passes 8   # quick

Printed are the least, the median and the largest of the passes' times, in microseconds per batch,
and the same of the ratios to the plain process's pass of the same number.
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


def _child(kind: str) -> None:
    """Runs a pass for each line of the standard input, and prints its two times as JSON."""
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
    for _line in sys.stdin:
        model.train()
        begin = time.perf_counter()
        for xb, yb in trained:
            optimizer.zero_grad()
            functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
        training = (time.perf_counter() - begin) / len(trained)
        model.eval()
        hits = 0
        begin = time.perf_counter()
        with torch.no_grad():
            for xb, yb in evaluated:
                output = model(xb)
                if kind == _KINDS[2]:
                    functional.cross_entropy(output, yb)
                hits += int((output.argmax(1) == yb).sum())
        evaluation = (time.perf_counter() - begin) / len(evaluated)
        print(json.dumps({"training": training * 1e6, "evaluation": evaluation * 1e6}), flush=True)
    losses = 0.0
    if watcher is not None:
        watcher.detach()
        losses = len(td.Run(run_dir).scalars("loss/cross_entropy", "eval")[1]) / len(evaluated)
    print(json.dumps({"losses": losses}), flush=True)


def _start(kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--child", kind]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(child: subprocess.Popen[str], line: str | None) -> dict[str, float]:
    """The child's answer to a line, or to the end of its input."""
    assert child.stdin is not None
    assert child.stdout is not None
    if line is None:
        child.stdin.close()
    else:
        child.stdin.write(line)
        child.stdin.flush()
    answer = child.stdout.readline()
    if not answer:
        raise RuntimeError(f"a process of the benchmark ended with {child.wait()}")
    found: dict[str, float] = json.loads(answer)
    return found


def _line(what: str, values: list[float], form: str) -> str:
    least, middle, most = min(values), statistics.median(values), max(values)
    return f"{what:44} {least:{form}} / {middle:{form}} / {most:{form}}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passes", type=int, default=40, metavar="N", help="default: 40")
    parser.add_argument("--child", choices=_KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.passes <= _FIRST:
        parser.error(f"--passes: more than {_FIRST}, the first ones are left out")
    if options.child:
        _child(options.child)
        return 0
    children = {kind: _start(kind) for kind in _KINDS}
    passes: list[dict[str, dict[str, float]]] = []
    for number in range(options.passes):
        order = _KINDS if number % 2 == 0 else _KINDS[::-1]
        times = {kind: _ask(children[kind], "\n") for kind in order}
        if number >= _FIRST:
            passes.append(times)
    losses = {kind: _ask(child, None)["losses"] for kind, child in children.items()}
    print(f"passes with losses of the evaluation: {losses['watched']:.0f} of {options.passes}")
    for what in ("training", "evaluation"):
        for kind in _KINDS:
            values = [each[kind][what] for each in passes]
            print(_line(f"{what}, {kind}, us per batch", values, "6.1f"))
        for kind in _KINDS[1:]:
            ratios = [each[kind][what] / each[_KINDS[0]][what] for each in passes]
            print(_line(f"{what}, {kind}, ratio", ratios, "6.3f"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
