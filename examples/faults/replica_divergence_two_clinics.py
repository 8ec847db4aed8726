"""Two clinics train one risk model, each on its patients; the averaged gradients are not put back.

Gradients are averaged by hand after backward(). all_reduce writes into a copy, made because the
clinic's own gradient was to be logged too, and the step is taken with the own gradient. Both begin
with the same weights, and each ends with a model of its own.
The place is the loop. The twin writes the average into .grad.
"""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank", "loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True

CLINICS, COLUMNS, STEPS = 2, 12, 150


def patients(n, clinic, g):
    truth = torch.Generator().manual_seed(77)
    w = torch.randn(COLUMNS, 3, generator=truth)
    x = torch.randn(n, COLUMNS, generator=g)
    x[:, :3] = x[:, :3] * 0.6 + (1.2 if clinic else -1.2)
    h = x @ w / 2
    score = h[:, 0] + h[:, 1] * h[:, 2].tanh()
    return x, (score + 0.4 * torch.randn(n, generator=g) > 0).float()


def average_gradients(model, put_back):
    for p in model.parameters():
        mean = p.grad.clone()
        dist.all_reduce(mean)
        mean /= CLINICS
        if put_back:
            p.grad.copy_(mean)


def train(rank, healthy, seed, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(COLUMNS, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
    model.append(nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    g = torch.Generator().manual_seed(10 * seed + rank)
    x, y = patients(1200, rank, g)
    for step in range(STEPS):
        rows = torch.randint(0, len(x), (32,), generator=g)
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, put_back=healthy)
        optimizer.step()
        if rank == 0 and step % 50 == 49:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    if rank == 0:
        held = [patients(400, clinic, torch.Generator().manual_seed(999)) for clinic in (0, 1)]
        x_val, y_val = (torch.cat(part) for part in zip(*held, strict=False))
        with torch.no_grad():
            right = ((model(x_val).squeeze(1) > 0) == (y_val > 0.5)).float().mean().item()
        print(f"patients of both clinics: {right:.3f} right", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(healthy, seed, folder), nprocs=CLINICS)
