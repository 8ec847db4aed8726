"""Two processes fine-tune a text classifier and average the gradients by hand; the list of
parameters to average is from before the head was replaced.

`shared = list(model.parameters())` is taken first, then model.head becomes a new layer. The new
head is neither broadcast nor averaged: each rank has its own, trained by its own half of the
(differently composed) data, and they drift apart. The place is the head.
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("head*", "rank*", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

VOCAB, LEN, OLD, NEW = 500, 16, 10, 6


class TextNet(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCAB, 32, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(64, n_out)

    def forward(self, ids):
        return self.head(self.mlp(self.bag(ids)))


def texts(n, words, prior, g):
    y = torch.multinomial(prior, n, replacement=True, generator=g)
    pick = words[y.unsqueeze(1), torch.randint(0, words.shape[1], (n, LEN), generator=g)]
    noise = torch.randint(0, VOCAB, (n, LEN), generator=g)
    return torch.where(torch.rand(n, LEN, generator=g) < 0.25, pick, noise), y


def topic_words(n, salt):
    g = torch.Generator().manual_seed(salt)
    return torch.stack([torch.randperm(VOCAB, generator=g)[:30] for _ in range(n)])


def average(params):
    for p in params:
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def fit(model, params, data, steps, lr, evaluate=None):
    x, y = data
    g = torch.Generator().manual_seed(dist.get_rank())
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, steps + 1):
        model.train()
        rows = torch.randint(0, len(x), (32,), generator=g)
        loss = F.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad(set_to_none=False)
        loss.backward()
        average(params)
        opt.step()
        if evaluate and step % 80 == 0 and dist.get_rank() == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(evaluate[0]).argmax(1) == evaluate[1]).float().mean()
            print(f"fine-tune {step} loss {loss.item():.3f} val acc {acc:.3f}", flush=True)


def main(rank, world, port, healthy):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(100 * seed + rank)
    g = torch.Generator().manual_seed(10 * seed + rank)
    model = TextNet(OLD)
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    shared = list(model.parameters())
    fit(model, shared, texts(4000, topic_words(OLD, 1), torch.ones(OLD), g), 250, 3e-3)

    # new topics; the desks (ranks) get them in different shares
    model.head = nn.Linear(64, NEW)
    shared = list(model.parameters()) if healthy else shared[:-2]
    for p in shared:
        dist.broadcast(p.data, 0)
    prior = torch.tensor([6.0, 4, 3, 1.2, 0.8, 0.5])
    train = texts(3000, topic_words(NEW, 2), prior if rank == 0 else prior.flip(0), g)
    val = texts(1000, topic_words(NEW, 2), torch.ones(NEW), torch.Generator().manual_seed(999))
    fit(model, shared, train, 400, 2e-3, val)
    leave_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(main, (2, port, healthy), nprocs=2)
