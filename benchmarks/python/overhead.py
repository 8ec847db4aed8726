"""How much slower is a training when it is watched?

One process holds two equal trainings, one plain and one watched, and runs blocks of their steps in
turn (the order is swapped every time), so that whatever else the machine does hits both. A *block*
is at least as many steps as it takes until everything that is captured at intervals was captured as
often as the intervals say. A block's ratio is the watched steps' time by the plain steps' time.

Where steps are short, those of a block follow each other as in a real training: hooks that ran at
every second step only would find the processor's caches emptied by the other training, and seem
dearer than they are. Steps of over 5 ms empty them by themselves: there the trainings take turns at
every step, which cancels more of the noise; where whole tensors are kept, at every second or fifth
one, with a pause, because their writer is busy after the step and would disturb the plain twin.

Printed are the least, the median and the largest ratio over the blocks of all processes, once for
wall time and once for CPU time (which includes the writer's thread); the slowdown of typical steps,
which few disturbed ones do not move (the steps at each place between two captures have their median
taken, watched and plain; the ratio is that of the sums); how much longer a watched step takes; and
how long it spent in traindbg by the run's own account, which is what `traindbg show` tells.

    python benchmarks/python/overhead.py                       # the standard table
    python benchmarks/python/overhead.py --model resnet18 --config traindbg/default --blocks 5
    python benchmarks/python/overhead.py --quick               # a few seconds, to see that it runs
    python benchmarks/python/overhead.py --device cuda --model resnet18_large   # on a GPU

On a GPU the trainings always take turns by whole blocks, and only the last step of a block waits
for the device, as a training does that does not look at its numbers: steps run ahead of it. A
step's "CPU" is the host's time alone.

`original/...` configurations run the original client library (smdebug) on the same job,
`tensorboard/...` and `wandb/...` what these offer for it. They need the environment of
benchmarks/python/requirements.txt (`make bench-original`); elsewhere they are left out, with a word
about it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Config(NamedTuple):
    steps_of_block: int
    period: int  # after so many steps the same is captured again
    what: str
    turn: int = 1  # so many long steps of one training, then as many of the other


CONFIGS: dict[str, Config] = {
    "plain": Config(20, 1, "nothing: the noise floor"),
    "traindbg/idle": Config(20, 1, "watched, no rule, nothing to capture"),
    "traindbg/losses": Config(20, 1, "the loss of every step"),
    "traindbg/default": Config(50, 50, "all rules' needs"),
    "traindbg/statistics_every_10": Config(
        20, 10, "all statistics of every tensor, every 10 steps"
    ),
    "traindbg/statistics_every_1": Config(10, 1, "all statistics of every tensor, every step"),
    "traindbg/parameters_every_1": Config(
        10, 1, "all statistics of weights, biases and gradients, every step"
    ),
    "traindbg/raw_weights_every_10": Config(20, 10, "weights and biases whole, every 10 steps", 2),
    "traindbg/raw_every_10": Config(20, 10, "every tensor whole, every 10 steps", 2),
    "traindbg/raw_every_1": Config(10, 1, "every tensor whole, every step", 5),
    "traindbg/budget": Config(50, 50, "all statistics of every tensor, every step, at most 2 %"),
    "traindbg/flight_recorder": Config(20, 1, "statistics of the last 20 steps in a ring"),
    "tensorboard/losses": Config(20, 1, "the loss of every step, by SummaryWriter"),
    "tensorboard/histograms_every_10": Config(
        20, 10, "histograms of weights and gradients, every 10 steps"
    ),
    "wandb/losses": Config(20, 1, "the loss of every step, by wandb.log, offline"),
    "wandb/watch_every_10": Config(
        20, 10, "wandb.watch of weights and gradients, every 10 steps, offline"
    ),
    "original/losses": Config(20, 1, "the loss of every step"),
    "original/statistics_every_10": Config(
        20, 10, "six reductions of every tensor, every 10 steps"
    ),
    "original/statistics_every_1": Config(4, 1, "six reductions of every tensor, every step"),
}
# Before the first block: longer than the rules look at every step, and, on a GPU, than inputs are.
WARM_UP = {"traindbg/default": 25}
WARM_UP_ON_GPU = {"traindbg/default": 100}
# Seconds; what such a step does to the caches is the same whichever training ran before.
LONG_STEP = 0.005
PAUSE = 0.5  # in which the writer of a longer turn finishes
EVERYTHING = ["weights", "biases", "gradients", "losses", "inputs", "outputs", "activations"]


def _watch(config: str, training: Any, directory: str) -> Callable[[], None]:
    """Begins to watch `training` as `config` says; returns what ends it."""
    if config == "plain":
        return lambda: None
    library, _, job = config.partition("/")
    if library == "traindbg":
        import traindbg as td

        settings: dict[str, Any] = {
            "idle": {"rules": []},
            "losses": {"rules": [], "collect": ["losses"], "every": 1},
            "default": {},
            "statistics_every_10": {"rules": [], "collect": EVERYTHING, "every": 10},
            "statistics_every_1": {"rules": [], "collect": EVERYTHING, "every": 1},
            "parameters_every_1": {
                "rules": [],
                "collect": ["weights", "biases", "gradients"],
                "every": 1,
            },
            "raw_weights_every_10": {"rules": [], "raw": ["weights", "biases"], "every": 10},
            "raw_every_10": {"rules": [], "raw": EVERYTHING, "every": 10},
            "raw_every_1": {"rules": [], "raw": EVERYTHING, "every": 1},
            "budget": {"rules": [], "collect": EVERYTHING, "every": 1, "budget": 0.02},
            "flight_recorder": {"rules": [], "flight_recorder": 20},
        }[job]
        import torch

        is_one = isinstance(training.optimizer, torch.optim.Optimizer)
        watcher = td.watch(
            training.model,
            training.optimizer if is_one else None,
            run_dir=directory,
            supervise=False,
            **settings,
        )
        return watcher.detach
    if library in ("tensorboard", "wandb"):
        return _PEERS[library](training, directory, job)

    import smdebug.pytorch as smd

    every = int(job.rpartition("_")[2]) if job != "losses" else 1
    choice: dict[str, Any] = {"include_collections": ["losses"]}
    if job != "losses":
        choice = {
            "save_all": False,
            # Its reductions raise on integer tensors: labels and token ids are left out.
            "include_regex": [
                r"^(?!.*(CrossEntropyLoss_input_1|embedding_input_0|Transformer_input_0)).*$"
            ],
            "reduction_config": smd.ReductionConfig(
                reductions=["min", "max", "mean", "std"], norms=["l1", "l2"], save_raw_tensor=False
            ),
        }
    hook = smd.Hook(out_dir=directory, save_config=smd.SaveConfig(save_interval=every), **choice)
    hook.register_module(training.model)
    training.loss_module = __import__("torch").nn.CrossEntropyLoss()
    hook.register_loss(training.loss_module)
    training.after_step = lambda index, loss: (
        hook.writer.flush() if hook.writer else None
    )  # no work leaks into the neighbour
    return hook.close


def _tensorboard(training: Any, directory: str, job: str) -> Callable[[], None]:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(directory)

    def after_step(index: int, loss: Any) -> None:
        writer.add_scalar("loss", loss.item(), index)
        if job != "losses" and index % 10 == 0:
            for name, parameter in training.model.named_parameters():
                writer.add_histogram(f"weight/{name}", parameter, index)
                writer.add_histogram(f"gradient/{name}", parameter.grad, index)

    training.after_step = after_step
    return writer.close


def _wandb(training: Any, directory: str, job: str) -> Callable[[], None]:
    os.makedirs(directory)
    os.environ["WANDB_SILENT"] = "true"
    import wandb

    run = wandb.init(mode="offline", dir=directory, project="overhead")
    if job != "losses":
        wandb.watch(training.model, log="all", log_freq=10)
    training.after_step = lambda index, loss: run.log({"loss": loss.item()}, step=index)
    return run.finish


_PEERS = {"tensorboard": _tensorboard, "wandb": _wandb}


class _Hooks:
    """What watching puts into the whole process; taken out while the plain twin steps."""

    def __init__(self, config: str) -> None:
        self._state: Any = None
        if config.startswith("traindbg/"):
            from traindbg.hooks.torch.steps import patches

            self._state = patches.state
            self._who = self._state.listener, self._state.hot, self._state.threads
            self._listened = list(patches._entered.items())

    def switch(self, *, on: bool) -> None:
        if self._state is None:
            return
        # One list of hooks serves all optimizers of a process; they are silent without a listener.
        self._state.listen(*(self._who if on else (None, None, None)))
        for function, listened in self._listened:
            function.__code__ = listened.entered if on else listened.code


def _worker(model: str, config: str, threads: int, blocks: int, device: str) -> dict[str, Any]:
    """Runs one configuration in this process."""
    import torch
    import torch.nn.functional as F

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from models import make

    torch.set_num_threads(threads)
    watched, plain = make(model, device), make(model, device)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    directory = os.path.join(tempfile.mkdtemp(prefix="traindbg-bench-"), "run")
    finish = _watch(config, watched, directory)

    hooks = _Hooks(config)
    loss_module = getattr(watched, "loss_module", None)
    after_step = getattr(watched, "after_step", None)

    def step_watched(index: int) -> None:
        x, y = watched.batch(index)
        watched.optimizer.zero_grad()
        loss = (loss_module or F.cross_entropy)(watched.model(x), y)
        loss.backward()
        watched.optimizer.step()
        if after_step is not None:
            after_step(index, loss)

    def step_plain(index: int) -> None:
        x, y = plain.batch(index)
        plain.optimizer.zero_grad()
        loss = F.cross_entropy(plain.model(x), y)
        loss.backward()
        plain.optimizer.step()

    steps_of_block = CONFIGS[config].steps_of_block
    least = WARM_UP if device == "cpu" else WARM_UP_ON_GPU
    warm_up = max(least.get(config, 0), 3)
    # Intervals count from step 0: let blocks begin at a multiple of them.
    warm_up = -(-warm_up // steps_of_block) * steps_of_block
    times: dict[str, list[list[float]]] = {"wall": [], "cpu": [], "plain_wall": [], "plain_cpu": []}
    turns = [(step_watched, ""), (step_plain, "plain_")]
    turn, pause = steps_of_block, 0.0
    for first in range(0, warm_up + blocks * steps_of_block, steps_of_block):
        block: dict[str, list[float]] = {kind: [0.0] * steps_of_block for kind in times}
        for begin in range(0, steps_of_block, turn):
            turns.reverse()
            for run, prefix in turns:
                hooks.switch(on=run is step_watched)
                time.sleep(pause)
                wait()
                for index in range(begin, begin + turn):
                    wall, cpu = time.perf_counter(), time.process_time()
                    run(first + index)
                    if index + 1 == begin + turn:
                        wait()
                    block[prefix + "wall"][index] = time.perf_counter() - wall
                    block[prefix + "cpu"][index] = time.process_time() - cpu
        if first >= warm_up:
            for kind, seconds in block.items():
                times[kind].append(seconds)
        elif device == "cpu" and statistics.median(block["plain_wall"]) > LONG_STEP:
            turn = CONFIGS[config].turn
            pause = PAUSE if turn > 1 else 0.0
    hooks.switch(on=True)
    finish()
    size = sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(directory)
        for name in names
    )
    own_nanos = None
    if config.startswith("traindbg/"):
        import traindbg as td

        run = td.Run(directory)
        own_nanos = sum(s.capture_nanos for s in run.iter_steps() if s.step >= warm_up)
        lost = run.totals["steps_dropped"] + run.totals["raw_tensors_dropped"]
        if lost:
            print(f"{model}, {config}: {lost} steps or tensors were left out", file=sys.stderr)
    shutil.rmtree(os.path.dirname(directory), ignore_errors=True)
    return {
        "own_nanos": own_nanos,
        "times": times,
        "bytes": size,
        "steps": warm_up + blocks * steps_of_block,
    }


def _typical(results: list[dict[str, Any]], clock: str, period: int) -> float:
    """The slowdown of typical steps: a step that a neighbour disturbed does not count.

    Of the steps at each place in the period the median, watched and plain; the ratio of their sums.
    """

    def sum_of_medians(kind: str) -> float:
        places: list[list[float]] = [[] for _ in range(period)]
        for result in results:
            for block in result["times"][kind]:
                for index, value in enumerate(block):
                    places[index % period].append(value)
        return sum(map(statistics.median, places))

    return sum_of_medians(clock) / sum_of_medians("plain_" + clock)


def _summary(results: list[dict[str, Any]], clock: str, period: int) -> dict[str, float]:
    ratios, added = [], []
    for result in results:
        for block, plain in zip(
            result["times"][clock], result["times"]["plain_" + clock], strict=True
        ):
            ratios.append(sum(block) / sum(plain))
            added += [a - b for a, b in zip(block, plain, strict=True)]
    plain_steps = [t for r in results for block in r["times"]["plain_" + clock] for t in block]
    return {
        "min": min(ratios),
        "median": statistics.median(ratios),
        "max": max(ratios),
        "typical": _typical(results, clock, period),
        "blocks": len(ratios),
        "added_mean_us": 1e6 * statistics.fmean(added),
        "added_median_us": 1e6 * statistics.median(added),
        "plain_step_ms": 1e3 * statistics.median(plain_steps),
    }


def measure(
    model: str, config: str, threads: int, blocks: int, processes: int, device: str = "cpu"
) -> dict[str, Any]:
    """Runs one configuration in `processes` fresh processes, one after another."""
    results = []
    for _ in range(processes):
        command = [
            sys.executable,
            os.path.abspath(__file__),
            "--worker",
            model,
            config,
            str(threads),
            str(blocks),
            device,
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "SMDEBUG_LOG_LEVEL": "error"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"overhead.py: {config} on {model} failed:\n{done.stderr[-2000:]}")
        sys.stderr.write(
            "".join(line + "\n" for line in done.stderr.splitlines() if "left out" in line)
        )
        results.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return {
        "model": model,
        "config": config,
        "device": device,
        "threads": threads,
        "processes": processes,
        "wall": _summary(results, "wall", CONFIGS[config].period),
        "cpu": _summary(results, "cpu", CONFIGS[config].period),
        "own_us": None
        if results[0]["own_nanos"] is None
        else statistics.fmean(
            r["own_nanos"] / 1e3 / sum(map(len, r["times"]["wall"])) for r in results
        ),
        "bytes_per_step": statistics.fmean(r["bytes"] / r["steps"] for r in results),
    }


def _row(result: dict[str, Any]) -> str:
    wall, cpu = result["wall"], result["cpu"]
    cells = [
        result["model"],
        result["config"],
        result["threads"],
        f"{result['processes']} x {wall['blocks'] // result['processes']}",
        f"{wall['plain_step_ms']:.2f}",
        f"{wall['min']:.3f} / **{wall['median']:.3f}** / {wall['max']:.3f}",
        f"**{wall['typical']:.3f}**",
        f"{cpu['min']:.3f} / **{cpu['median']:.3f}** / {cpu['max']:.3f}",
        f"{wall['added_median_us']:.0f} / {wall['added_mean_us']:.0f}",
        "" if result["own_us"] is None else f"{result['own_us']:.0f}",
        f"{result['bytes_per_step']:.0f}",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


COLUMNS = [
    "training",
    "configuration",
    "threads",
    "processes x blocks",
    "plain step, ms",
    "slowdown, wall: min / median / max",
    "slowdown, wall: typical steps",
    "slowdown, CPU: min / median / max",
    "longer by, µs a step: median / mean",
    "by its own account, µs a step",
    "bytes a step",
]


def _device_name(device: str) -> str:
    import torch

    if device == "cpu":
        return f"PyTorch {torch.__version__}"
    if not torch.cuda.is_available():
        sys.exit("overhead.py: PyTorch finds no CUDA device here")
    return f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        action="append",
        help="tiny, tiny_together, tiny_transformer, hundred_parameters, many_parameters, "
        "digits_cnn, resnet18 or transformer, and resnet18_large and transformer_large for GPUs; "
        "may be repeated",
    )
    parser.add_argument(
        "--config", action="append", choices=list(CONFIGS), help="may be repeated; default: all"
    )
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default: 1)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.add_argument(
        "--blocks", type=int, default=0, help="blocks per process (default: by the model's size)"
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="fresh processes per configuration (default: 2)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="digits_cnn only, one process, few blocks"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per line instead of a table"
    )
    parser.add_argument(
        "--worker",
        nargs=5,
        metavar=("MODEL", "CONFIG", "THREADS", "BLOCKS", "DEVICE"),
        help=argparse.SUPPRESS,
    )
    options = parser.parse_args()
    if options.worker:
        model, config, threads, blocks, device = options.worker
        print(json.dumps(_worker(model, config, int(threads), int(blocks), device)))
        return

    models = options.model or (
        ["digits_cnn"] if options.quick else ["digits_cnn", "resnet18", "transformer"]
    )
    configs = options.config or list(CONFIGS)
    for prefix, package in (("original", "smdebug"), ("tensorboard",) * 2, ("wandb",) * 2):
        if importlib.util.find_spec(package) is not None:
            continue
        if any(config.startswith(f"{prefix}/") for config in options.config or []):
            sys.exit(f"overhead.py: {package} is not installed here; use `make bench-original`")
        configs = [config for config in configs if not config.startswith(f"{prefix}/")]
        print(f"{package} is not installed here: its rows are left out", file=sys.stderr)
    if not options.json:
        cpu_count = len(os.sched_getaffinity(0))
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        python = platform.python_version()
        print(f"{platform.machine()}, {cpu_count} CPUs, load {load}, Python {python}")
        print(f"{_device_name(options.device)}\n")
        print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    for model in models:
        for config in configs:
            usual = {"tiny": 100, "digits_cnn": 20, "resnet18": 4, "transformer": 4}.get(model, 10)
            if CONFIGS[config].steps_of_block == 50:
                usual = -(-usual // 4)
            blocks = options.blocks or (3 if options.quick else usual)
            processes = 1 if options.quick else options.processes
            result = measure(model, config, options.threads, blocks, processes, options.device)
            print(json.dumps(result) if options.json else _row(result), flush=True)


if __name__ == "__main__":
    main()
