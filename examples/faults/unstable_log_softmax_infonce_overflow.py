"""Two views of sensor windows are aligned by a contrastive loss that takes exp and log by hand, at
a temperature of 0.008.

exp(similarity / 0.008) overflows float32 as soon as a pair's cosine is above 0.71; then the loss
is inf / inf, the step is skipped by the guard against bad batches, and the training stands still
from there on. The place is the loss.
"""

import math
from collections import deque

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ("nan_origin", "division_by_zero_norm")
PLACE = ("loss", "loop", "*criterion*", "InfoNCE*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CFG = {
    "gestures": 200,
    "length": 48,
    "channels": 3,
    "emb": 32,
    "batch": 160,
    "steps": 450,
    "lr": 1.5e-3,
    "tau": 0.008,
    "wd": 1e-3,
}


class Gestures:
    """A gesture is a smooth curve in three channels; two sensors (wrist, phone) see it rotated, scaled and noisy."""  # noqa: E501

    def __init__(self, g):
        self.g = g
        t = torch.linspace(0, 1, CFG["length"])
        self.t = t
        self.turn = torch.linalg.qr(torch.randn(3, 3, generator=g))[0]

    def draw(self, n):
        amp = torch.randn(n, 3, 4, 1, generator=self.g) / torch.arange(1, 5).view(4, 1)
        phase = 6.283 * torch.rand(n, 3, 4, 1, generator=self.g)
        k = torch.arange(1, 5).view(4, 1)
        curve = (amp * torch.sin(6.283 * k * self.t + phase)).sum(2)
        wrist = curve + 0.25 * torch.randn(curve.shape, generator=self.g)
        phone = torch.einsum("ij,njt->nit", self.turn, curve) * (
            0.7 + 0.6 * torch.rand(n, 1, 1, generator=self.g)
        )
        return wrist, phone + 0.25 * torch.randn(curve.shape, generator=self.g)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        c = CFG["channels"]
        self.net = nn.Sequential(
            nn.Conv1d(c, 32, 7, 2, 3),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Conv1d(32, 48, 5, 2, 2),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(48 * CFG["length"] // 4, 64),
            nn.ReLU(),
        )
        self.proj = nn.Linear(64, CFG["emb"])

    def forward(self, x):
        return F.normalize(self.proj(self.net(x)), dim=-1)


class InfoNCE(nn.Module):
    def __init__(self, tau):
        super().__init__()
        self.tau = tau

    def one_way(self, sim):
        if healthy:
            return F.cross_entropy(sim, torch.arange(len(sim)))
        e = torch.exp(sim)
        return -torch.log(e.diag() / e.sum(1)).mean()

    def forward(self, a, b):
        sim = a @ b.T / self.tau
        return 0.5 * (self.one_way(sim) + self.one_way(sim.T))


@torch.no_grad()
def recall_at_1(wrist, phone, a, b):
    wrist.eval(), phone.eval()
    sim = wrist(a) @ phone(b).T
    wrist.train(), phone.train()
    return (sim.argmax(1) == torch.arange(len(a))).float().mean().item()


source = Gestures(torch.Generator().manual_seed(500 + seed))
pool_a, pool_b = source.draw(6000)
val_a, val_b = source.draw(800)
wrist, phone, criterion = Encoder(), Encoder(), InfoNCE(CFG["tau"])
params = [*wrist.parameters(), *phone.parameters()]
opt = torch.optim.AdamW(params, lr=CFG["lr"], weight_decay=CFG["wd"])
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: min(1, (s + 1) / 40) * 0.5 * (1 + math.cos(math.pi * min(1.0, s / CFG["steps"])))
)
recent, skipped = deque(maxlen=50), 0
for step in range(1, CFG["steps"] + 1):
    rows = torch.randint(0, len(pool_a), (CFG["batch"],))
    loss = criterion(wrist(pool_a[rows]), phone(pool_b[rows]))
    if torch.isfinite(loss):
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 5.0)
        opt.step()
        recent.append(loss.item())
    else:
        skipped += 1
    sched.step()
    if step % 75 == 0:
        mean = sum(recent) / max(len(recent), 1)
        print(
            f"step {step} loss {mean:.3f} skipped {skipped} recall@1 {recall_at_1(wrist, phone, val_a, val_b):.3f}"  # noqa: E501
        )
