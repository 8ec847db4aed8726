"""Whether gradients that are averaged over processes are used: one process, and a group of one."""

from __future__ import annotations

import pytest
import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.base.guard import failures
from traindbg.hooks.torch.steps import patches

FACT = "loop/reduced_in_vain"


@pytest.fixture
def group(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def flat(model, back=True, data=False):
    whole = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(whole)
    start = 0
    for p in model.parameters() if back else ():
        part = whole[start : start + p.numel()].view_as(p)
        if data:
            p.grad = part.clone()
        else:
            p.grad.copy_(part)
        start += p.numel()


def each(model, copied):
    for p in model.parameters():
        dist.all_reduce(p.grad.clone() if copied else p.grad)


WAYS = {
    "flat, and not copied back": (lambda model: flat(model, back=False), {1}),
    "each, as a copy": (lambda model: each(model, copied=True), {1}),
    "flat": (flat, {0}),
    "flat, and put in": (lambda model: flat(model, data=True), {0}),
    "each": (lambda model: each(model, copied=False), {0}),
    "a loss": (lambda model: dist.all_reduce(torch.ones(())), None),
    "statistics": (lambda model: dist.all_reduce(torch.ones(7)), None),
    "nothing": (lambda model: None, None),
}


def train(run_dir, average, after=None, told=FACT):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rules = ["replica_divergence", "detached_loss"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(6):
            x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            average(model)
            optimizer.step()
            if after is not None:
                after(model)
    run = td.Run(run_dir)
    return set(run.scalars(told).values.tolist()) if told in run.names() else None


@pytest.mark.parametrize("name", WAYS)
def test_what_is_reduced_is_compared_with_what_is_used(run_dir, group, name):
    average, expected = WAYS[name]
    assert train(run_dir, average) == expected


def test_weights_may_be_averaged_after_the_step(run_dir, group):
    def average(model):
        whole = torch.cat([p.detach().flatten() for p in model.parameters()])
        dist.all_reduce(whole)

    assert train(run_dir, lambda model: None, after=average) is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (lambda model: None, lambda model: each(model, copied=False), {1}),
        (lambda model: each(model, copied=False), lambda model: each(model, copied=False), None),
        (lambda model: None, lambda model: each(model, copied=True), None),
        (lambda model: None, lambda model: dist.all_reduce(model[0].weight.grad), None),
        (lambda model: None, lambda model: None, None),
    ],
    ids=["too late", "again", "copies", "one of them", "never"],
)
def test_gradients_that_are_reduced_after_the_step(run_dir, group, before, after, expected):
    assert train(run_dir, before, after, told="loop/reduced_after_step") == expected


def test_sparse_gradients_are_let_pass(run_dir, group):
    model = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = dict(failures)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["replica_divergence"]):
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randint(0, 9, (8,))), torch.randint(0, 3, (8,))).backward()
            for p in model.parameters():
                dist.all_reduce(p.grad)
            optimizer.step()
    assert failures == before


def test_the_function_is_itself_again():
    code = dist.all_reduce.__code__
    patches.acquire()
    try:
        assert dist.all_reduce.__code__ is not code
        assert dist.all_reduce is dist.distributed_c10d.all_reduce
    finally:
        patches.release()
    assert dist.all_reduce.__code__ is code
