"""Trainings of two processes that work together: DDP, FSDP2, tensor parallel, on gloo.

What a rank records is its own; no test and no hook may make one rank wait for another that is gone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import Server
from trainings import SECONDS, clean_environment, traindbg, traindbg_json

import traindbg as td

# A process for each rank, as torchrun starts them, without an import of torch.
# argv: ranks, command.
LAUNCHER = """
import os, subprocess, sys

world = int(sys.argv[1])
children = [
    subprocess.Popen(
        sys.argv[2:],
        env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world)),
    )
    for rank in range(world)
]
sys.exit(max(abs(child.wait()) for child in children))
"""

# What all trainings below share. OUT is a folder; gloo finds the other rank by a file in it.
COMMON = '''
import hashlib, json, os, sys
import torch
import torch.distributed as dist
from torch.nn import functional as F


def join(rank=None, world=None):
    rank = int(os.environ["RANK"]) if rank is None else rank
    world = int(os.environ["WORLD_SIZE"]) if world is None else world
    store = "file://" + OUT + "/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    return rank, world


def batch(rank, number):
    random = torch.Generator().manual_seed(1000 * rank + number)
    return torch.randn(3, 4, generator=random), torch.randn(3, 1, generator=random)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Dropout(0.0), torch.nn.Linear(5, 1)
    )


def digest(*values):
    """Of tensors bit for bit, and of whatever else."""
    text = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            value = getattr(value.detach(), "_local_tensor", value.detach()).reshape(-1)
            text.update(value.view(torch.uint8).numpy().tobytes() if value.numel() else b"")
        else:
            text.update(repr(value).encode())
    return text.hexdigest()


def everything(net, optimizer, losses):
    state = [value for kept in optimizer.state.values() for value in kept.values()]
    return digest(*net.parameters(), *state, *losses, torch.random.get_rng_state())


def keep(rank, **facts):
    with open(f"{OUT}/facts{rank}.json", "w") as file:
        json.dump(facts, file)
'''


def write(folder: Path, name: str, text: str) -> Path:
    script = folder / name
    script.write_text(f"OUT = {str(folder)!r}\n{COMMON}\n{text}")
    return script


def plain(command: list[Any], **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(**extra),
    )


def facts_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads((folder / f"facts{rank}.json").read_text()) for rank in (0, 1)]


# Zero code.

DDP = """
rank, world = join()
ddp = torch.nn.parallel.DistributedDataParallel(model())
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
losses, means = [], []
for step in range(4):
    # The same by hand: the mean over ranks of what two micro-batches add up to.
    copy = model()
    copy.load_state_dict(ddp.module.state_dict())
    total = 0
    for other in range(world):
        for micro in (0, 1):
            inputs, labels = batch(other, 2 * step + micro)
            total = total + (copy(inputs) - labels).pow(2).mean() / world
    (mean,) = torch.autograd.grad(total, [copy[0].weight])
    means.append(mean.flatten().tolist())
    optimizer.zero_grad()
    with ddp.no_sync():
        inputs, labels = batch(rank, 2 * step)
        loss = F.mse_loss(ddp(inputs), labels)
        loss.backward()
        losses.append(loss)
    inputs, labels = batch(rank, 2 * step + 1)
    loss = F.mse_loss(ddp(inputs), labels)
    loss.backward()
    losses.append(loss)
    optimizer.step()
keep(rank, digest=everything(ddp, optimizer, losses), means=means)
dist.destroy_process_group()
"""


DIVERGES = """
import time
rank, world = join()
ddp = torch.nn.parallel.DistributedDataParallel(model())
optimizer = torch.optim.SGD(ddp.parameters(), lr=1e3)
for step in range(100_000):
    inputs, labels = batch(rank, step)
    optimizer.zero_grad()
    F.mse_loss(ddp(inputs), labels).backward()
    optimizer.step()
    time.sleep(0.002)
"""


def test_a_stop_under_torchrun_is_a_stop(tmp_path: Path) -> None:
    """Its ranks are gone within moments, and the launcher ends with 1."""
    script = write(tmp_path, "train.py", DIVERGES)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", "2", str(script)]
    options = ["--run-dir", tmp_path / "run", "--on-finding", "stop"]
    done = traindbg("run", *options, "--", *torchrun)
    assert done.returncode == 90, done.stderr
    assert "stopped by rule" in done.stderr


def test_ddp_under_torchrun_records_what_the_optimizer_uses(tmp_path: Path, forked: Server) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "launch.py").write_text(LAUNCHER)
    done = plain([alone / "launch.py", 2, *forked.python(), write(alone, "train.py", DDP)])
    assert done.returncode == 0, done.stderr

    script = write(tmp_path, "train.py", DDP)
    options = ["--collect", "weights,biases,gradients,outputs", "--raw", "weights,gradients"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", "2", str(script)]
    done = traindbg("run", "--run-dir", tmp_path / "run", *options, "--every", 1, "--", *torchrun)
    assert done.returncode == 0, done.stderr
    facts = facts_of(tmp_path)
    assert [f["digest"] for f in facts] == [f["digest"] for f in facts_of(alone)], "other values"

    run = td.Run(tmp_path / "run")
    assert run.workers == [0, 1]
    assert run.missing_workers == []
    assert run.is_complete
    tensors = [name for name in run.names() if "/" in name and not name.startswith("loop/")]
    assert not any("module" in name.split("/")[1] for name in tensors)
    for rank in (0, 1):
        assert [step.step for step in run.iter_steps(worker=rank)] == [0, 1, 2, 3]
    gradients = [run.tensor("gradient/0.weight", rank).raw_series().values for rank in (0, 1)]
    np.testing.assert_array_equal(gradients[0], gradients[1])
    by_hand = np.array(facts[0]["means"]).reshape(gradients[0].shape)
    np.testing.assert_allclose(gradients[0], by_hand, rtol=1e-5, atol=1e-6)
    for name in ("weight/0.weight", "weight/3.weight"):
        first, second = (run.tensor(name, rank).raw_series().values for rank in (0, 1))
        np.testing.assert_array_equal(first, second)
    losses = [run.scalars("loss", worker=rank).values for rank in (0, 1)]
    assert not np.array_equal(*losses), "each rank sees its own part of the batch"
    np.testing.assert_allclose(run.merged_series("loss").values, np.mean(losses, axis=0))
    weight = run["weight/0.weight"]
    np.testing.assert_array_equal(
        run.merged_series("weight/0.weight", "mean").values, weight.values("mean")
    )
    both = [run.tensor("output/3", rank).values("max") for rank in (0, 1)]
    merged = run.merged_series("output/3", "max")
    np.testing.assert_array_equal(merged.values, np.max(both, axis=0))
    assert merged.left_out.size == 0


# Spawned by the script, which watches by itself: each case is trained without traindbg and with.

CASES = '''
import traindbg as td
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP


class Forked(torch.nn.Module):
    """Of two branches only one is used, in turn."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.branches = torch.nn.ModuleList([torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)])
        self.calls = 0

    def forward(self, inputs):
        self.calls += 1
        return self.branches[self.calls % 2](inputs)


def sharded(net, **options):
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    for part in (net[0], net[3]):
        fully_shard(part, mesh=mesh, **options)
    return fully_shard(net, mesh=mesh, **options)


def make(case):
    from torch.distributed import fsdp

    if case == "ddp":
        return DDP(model())
    if case == "unused":
        return DDP(Forked(), find_unused_parameters=True)
    if case == "bucket_view":
        return DDP(model(), gradient_as_bucket_view=True)
    if case == "static_graph":
        return DDP(model(), static_graph=True)
    if case == "fsdp":
        return sharded(model())
    if case == "bf16":
        policy = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        return sharded(model(), mp_policy=policy)
    if case == "offload":
        return sharded(model(), offload_policy=fsdp.CPUOffloadPolicy(pin_memory=False))
    if case == "tensor_parallel":
        from torch.distributed.tensor.parallel import (
            ColwiseParallel, RowwiseParallel, parallelize_module,
        )

        plan = {"0": ColwiseParallel(), "3": RowwiseParallel()}
        net = torch.nn.Sequential(
            torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Dropout(0.0), torch.nn.Linear(6, 1)
        )
        return parallelize_module(net, init_device_mesh("cpu", (2,)), plan)
    raise ValueError(case)


def train(case, rank, is_watched):
    torch.manual_seed(0)
    net = make(case)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    torch.manual_seed(rank)
    everything_there_is = ("weights", "biases", "gradients", "inputs", "outputs", "activations")
    watcher = td.watch(
        net, optimizer, collect=everything_there_is, raw=("weights", "gradients"),
        histograms=("gradients",), every=1, rules=[],
    ) if is_watched else None
    losses = []
    for step in range(4):
        # The ranks of a tensor parallel group see one batch.
        inputs, labels = batch(0 if case == "tensor_parallel" else rank, step)
        optimizer.zero_grad()
        loss = F.mse_loss(net(inputs).float(), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    if watcher is not None:
        watcher.detach()
    return everything(net, optimizer, losses), str(watcher.run_dir) if watcher else ""


def work(rank):
    join(rank, 2)
    facts = {}
    for case in sys.argv[1:]:
        without, _ = train(case, rank, False)
        with_it, run = train(case, rank, True)
        facts[case] = {"same": without == with_it, "run": run}
    if rank == 0 and "fsdp" in sys.argv:
        # The same training in one process: the ranks' batches as one.
        net = model()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        with td.watch(net, optimizer, run_dir=OUT + "/single", rules=[], every=1):
            for step in range(4):
                (a, b), (c, d) = batch(0, step), batch(1, step)
                optimizer.zero_grad()
                F.mse_loss(net(torch.cat([a, c])), torch.cat([b, d])).backward()
                optimizer.step()
    keep(rank, **facts)
    dist.destroy_process_group()


if __name__ == "__main__":
    import torch.multiprocessing as processes

    processes.spawn(work, nprocs=2)
'''


def run_cases(folder: Path, *cases: str) -> dict[str, td.Run]:
    """Trains them; on both ranks the values must be the same with traindbg and without."""
    script = write(folder, "train.py", CASES)
    strict = {"TRAINDBG_STRICT": "1", "TRAINDBG_RUNS": str(folder / "runs")}
    done = plain([script, *cases], **strict)
    assert done.returncode == 0, done.stderr
    assert "not captured" not in done.stderr
    facts = facts_of(folder)
    for case in cases:
        assert facts[0][case]["run"] == facts[1][case]["run"], "two runs of one training"
        for rank in (0, 1):
            assert facts[rank][case]["same"], f"{case}: other values on rank {rank}"
    runs = {case: td.Run(facts[0][case]["run"]) for case in cases}
    for case, run in runs.items():
        assert run.workers == [0, 1], case
        assert run.worker_meta(1)["environment"]
        assert run.missing_workers == []
        assert run.is_complete
        assert not run.verify()
        for rank in (0, 1):
            assert [step.step for step in run.iter_steps(worker=rank)] == [0, 1, 2, 3], case
    return runs


def test_ddp_that_a_script_spawns_and_watches(tmp_path: Path) -> None:
    runs = run_cases(tmp_path, "ddp", "unused", "bucket_view", "static_graph")
    for case, run in runs.items():
        parameter = "branches.0.weight" if case == "unused" else "0.weight"
        for kind in ("gradient", "weight"):
            first, second = (
                run.tensor(f"{kind}/{parameter}", rank).raw_series() for rank in (0, 1)
            )
            np.testing.assert_array_equal(first.steps, second.steps)
            np.testing.assert_array_equal(first.values, second.values)
            assert len(first.steps) >= 2
    assert "shard" not in runs["ddp"]["weight/0.weight"].info


def test_fsdp_records_the_shards_and_their_statistics_merge(tmp_path: Path) -> None:
    runs = run_cases(tmp_path, "fsdp", "bf16", "offload")
    single = td.Run(tmp_path / "single")
    for case, run in runs.items():
        shards = [run.tensor("weight/0.weight", rank) for rank in (0, 1)]
        assert [shard.shape for shard in shards] == [(3, 4), (2, 4)], "uneven"
        assert [shard.info["shard"]["offset"] for shard in shards] == [(0, 0), (3, 0)]
        for shard in shards:
            assert shard.info["shard"]["whole_shape"] == (5, 4)
            assert shard.info["shard"]["placement"] == "shard(0)"
            assert shard.info["module_type"] == "Linear"
        # The second rank's part of the last layer is empty: described, and without values.
        assert run.tensor("gradient/3.weight", 1).shape == (0, 5)
        assert run.tensor("gradient/3.weight", 1).steps().size == 0
        assert run.tensor("output/0").shape == (3, 5), "outputs are plain"
        whole = np.concatenate([shard.raw_series().values for shard in shards], axis=1)
        for statistic, of in (("min", np.min), ("max", np.max), ("mean", np.mean), ("std", np.std)):
            merged = run.merged_series("weight/0.weight", statistic)
            expected = of(whole.reshape(4, -1).astype(np.float64), axis=1)
            np.testing.assert_allclose(merged.values, expected, rtol=1e-6, atol=1e-7)
            assert merged.left_out.size == 0
        tolerance = 0.1 if case == "bf16" else 1e-4
        for name in ("gradient/0.weight", "bias/0.bias", "gradient/3.weight", "bias/3.bias"):
            for statistic in ("l1", "l2", "mean", "std", "count", "variance", "rms"):
                np.testing.assert_allclose(
                    run.merged_series(name, statistic).values,
                    single[name].values(statistic),
                    rtol=tolerance,
                    atol=tolerance / 10,
                    err_msg=f"{case} {name} {statistic}",
                )

    run = runs["fsdp"]
    told = traindbg_json("get", run.path, "gradient/0.weight", "--stat", "count", "--merge-workers")
    assert told["merged"]["workers"] == [0, 1]
    assert told["merged"]["steps_left_out"] == 0
    assert [point["value"] for point in told["merged"]["points"]] == [20] * 4
    assert "[5, 4] shard(0)" in traindbg("show", run.path, "--tensors").stdout


def test_tensor_parallel_records_the_parts(tmp_path: Path) -> None:
    run = run_cases(tmp_path, "tensor_parallel")["tensor_parallel"]
    for rank in (0, 1):
        column = run.tensor("weight/0.weight", rank)
        assert column.shape == (3, 4)
        assert column.info["shard"]["placement"] == "shard(0)"
        row = run.tensor("gradient/3.weight", rank)
        assert row.shape == (1, 3)
        assert row.info["shard"] == {
            "whole_shape": (1, 6),
            "offset": (0, 3 * rank),
            "placement": "shard(1)",
        }
        assert run.tensor("bias/3.bias", rank).info["shard"]["placement"] == "replicate"
        assert run.tensor("output/3", rank).steps().size == 4
    np.testing.assert_array_equal(run.merged_series("gradient/3.weight", "count").values, [6] * 4)
    np.testing.assert_array_equal(run.merged_series("bias/3.bias", "count").values, [1] * 4)


# A rank that dies.

DYING = """
import signal

rank, world = join()
ddp = torch.nn.parallel.DistributedDataParallel(model())
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for step in range(200):
    if step == 5 and rank == 1:
        os._exit(3) if sys.argv[1] == "exit" else os.kill(os.getpid(), signal.SIGKILL)
    inputs, labels = batch(rank, step)
    optimizer.zero_grad()
    try:
        F.mse_loss(ddp(inputs), labels).backward()
    except RuntimeError:
        break  # gloo says that the other one is gone
    optimizer.step()
# The one that is left goes on alone.
alone = ddp.module
for step in range(20):
    optimizer.zero_grad()
    F.mse_loss(alone(inputs), labels).backward()
    optimizer.step()
"""


@pytest.mark.parametrize("death", ["exit", "kill"])
def test_a_rank_that_dies_stops_nobody_because_of_traindbg(
    death: str, tmp_path: Path, forked: Server
) -> None:
    (tmp_path / "launch.py").write_text(LAUNCHER)
    script = write(tmp_path, "train.py", DYING)
    command = [sys.executable, tmp_path / "launch.py", 2, *forked.python(), script, death]
    done = traindbg("run", "--run-dir", tmp_path / "run", "--", *command)
    assert done.returncode == (3 if death == "exit" else 9), done.stderr
    run = td.Run(tmp_path / "run")
    assert run.workers == [0, 1]
    assert not run.is_complete
    last = [step.step for step in run.iter_steps(worker=0)][-1]
    assert last >= 20
    told = traindbg_json("show", run.path)
    (gap,) = [entry for entry in told["stopped_workers"] if entry["worker"] == 1]
    assert gap["last_step_of_others"] == last
    assert not gap["closed"]
    assert gap["last_step"] <= 4
    assert "worker 1 stopped at step" in " ".join(done.stderr.split())
    # The mean of the losses is known where both have one.
    merged = run.merged_series("loss")
    assert merged.steps.tolist() == list(range(gap["last_step"] + 1))
    assert merged.left_out.tolist() == list(range(gap["last_step"] + 1, last + 1))


def test_data_parallel_without_devices_calls_the_module_itself(tmp_path: Path) -> None:
    script = write(
        tmp_path,
        "train.py",
        """
import traindbg as td

net = torch.nn.DataParallel(model())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
with td.watch(net, optimizer, run_dir=OUT + "/run", rules=[], every=1):
    for step in range(3):
        inputs, labels = batch(0, step)
        optimizer.zero_grad()
        F.mse_loss(net(inputs), labels).backward()
        optimizer.step()
""",
    )
    done = plain([script])
    assert done.returncode == 0, done.stderr
    run = td.Run(tmp_path / "run")
    assert run["output/0"].steps().tolist() == [0, 1, 2]
    assert run["gradient/3.weight"].steps().tolist() == [0, 1, 2]


# A rule stops them.

STOPPED = """
rank, world = join()
ddp = torch.nn.parallel.DistributedDataParallel(model())
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
steps = 0
try:
    while True:
        inputs, labels = batch(rank, steps)
        if steps >= 20:
            inputs = inputs * float("nan")
        optimizer.zero_grad()
        F.mse_loss(ddp(inputs), labels).backward()
        optimizer.step()
        steps += 1
finally:
    # A rank that had gone on would wait here, or in its backward, for one that is not there.
    keep(rank, steps=steps)
    dist.barrier()
    dist.destroy_process_group()
"""


def test_ranks_that_a_rule_stops_leave_after_the_same_step(tmp_path: Path, forked: Server) -> None:
    (tmp_path / "launch.py").write_text(LAUNCHER)
    script = write(tmp_path, "train.py", STOPPED)
    options = ["--on-finding", "stop", "--rules", "non_finite", "--run-dir", tmp_path / "run"]
    launch = [sys.executable, tmp_path / "launch.py", 2, *forked.python(), script]
    done = traindbg("run", *options, "--", *launch)
    assert done.returncode == 90, done.stderr
    first, second = facts_of(tmp_path)
    assert first["steps"] == second["steps"] >= 20
    run = td.Run(tmp_path / "run")
    assert run.is_complete
    last = [[step.step for step in run.iter_steps(worker=rank)][-1] for rank in (0, 1)]
    assert last[0] == last[1]
    assert "worker 0 stopped" not in done.stderr
    assert "worker 1 stopped" not in done.stderr


# What is wrong between the ranks: seen side by side, while they train and afterwards.

FAULTS = Path(__file__).parents[2] / "examples" / "faults"


@pytest.mark.parametrize(
    ("script", "rule", "words"),
    [
        ("replica_divergence_inner_module.py", "replica_divergence", "not averaged"),
        ("duplicate_shards_random_rows.py", "duplicate_shards", "the same batches as rank 0"),
    ],
)
def test_ranks_that_are_not_what_they_should_be_are_told(
    tmp_path: Path, script: str, rule: str, words: str, forked: Server
) -> None:
    for flags in ([], ["--healthy"]):
        run = tmp_path / ("healthy" if flags else "faulty")
        done = traindbg("run", "--run-dir", run, "--", *forked.python(), FAULTS / script, *flags)
        assert done.returncode == 0, done.stderr
        assert td.Run(run).workers == [0, 1]
        verdict = traindbg_json("check", run, codes=(0, 1))
        found = [f for f in verdict["findings"] if f["severity"] != "info"]
        if flags:
            assert not found
            continue
        assert [f["rule"] for f in found] == [rule], "said once, not by each rank"
        assert (found[0]["severity"], found[0]["worker"], found[0]["step"]) == ("error", 1, 2)
        assert words in found[0]["message"]
        assert words in done.stderr, "and while it ran"
