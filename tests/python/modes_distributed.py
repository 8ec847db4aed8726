"""Modes of training of two processes that work together, on gloo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from modes_optimizers import batches, perceptron
from same import Training, mode
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def group(t: Training) -> Iterator[None]:
    store = f"file://{t.folder}/{t.run_dir.name}.store"
    dist.init_process_group("gloo", init_method=store, rank=t.rank, world_size=2)
    torch.manual_seed(t.rank)
    try:
        yield
    finally:
        dist.destroy_process_group()


def mine(t: Training, steps: int = 4) -> list[tuple[torch.Tensor, ...]]:
    return [(x + t.rank, y) for x, y in batches(steps)]


@mode(ranks=2, steps=2)
def ddp_with_no_sync(t: Training) -> None:
    with group(t):
        model = DistributedDataParallel(perceptron(), gradient_as_bucket_view=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        t.watch(model, optimizer)
        for number, (x, y) in enumerate(mine(t)):
            if number % 2 == 0:
                with model.no_sync():
                    t.loss(F.cross_entropy(model(x), y) / 2).backward()
            else:
                t.loss(F.cross_entropy(model(x), y) / 2).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()


@mode(ranks=2)
def ddp_of_a_static_graph_with_a_hook(t: Training) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    with group(t):
        model = DistributedDataParallel(perceptron(), static_graph=True)
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        t.watch(model, optimizer)
        t.fit(model, optimizer, mine(t))


@mode(ranks=2, is_slow=True)
def ddp_of_sharded_optimizers(t: Training) -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    with group(t):
        model = DistributedDataParallel(perceptron())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
        t.watch(model)
        t.belongs(model)
        t.fit(model, optimizer, mine(t))


@mode(ranks=2, is_slow=True)
def fsdp2(t: Training) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    with group(t):
        model = perceptron()
        mesh = init_device_mesh("cpu", (2,))
        for part in (model[0], model[4]):
            fully_shard(part, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        t.watch(model, optimizer)
        t.fit(
            model,
            optimizer,
            mine(t),
            before_step=lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0),
        )


@mode(ranks=2, is_slow=True)
def fsdp1(t: Training) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    with group(t):
        model = FullyShardedDataParallel(
            perceptron(), device_id=torch.device("cpu"), use_orig_params=True
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        t.watch(model, optimizer)
        t.fit(model, optimizer, mine(t), before_step=lambda: model.clip_grad_norm_(0.5))
