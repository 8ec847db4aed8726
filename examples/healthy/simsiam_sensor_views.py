"""Self-supervised views of vibration signals with a stop-gradient (SimSiam-like with an averaged
target), then a probe.

Odd: the targets are detached and come from a network that no optimizer knows, the loss is
negative (minus a cosine) and there are no negatives; the learning rate is warmed up from nearly
0. It doesn't collapse (the spread of the embeddings is printed), and the probe with frozen
features beats the one on random features clearly.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "Self-supervised views of vibration signals with a stop-gradient (SimSiam-like with an "
    "averaged target), then a probe"
)
_, seed = arguments(__doc__)

CLASSES, LENGTH = 5, 64


def vibrations(n, seed):
    r = np.random.default_rng(seed)
    tones = np.random.default_rng(8).uniform(0.15, 1.1, (CLASSES, 3))
    level = np.random.default_rng(9).uniform(0.3, 1.0, (CLASSES, 3))
    y = r.integers(0, CLASSES, n)
    t = np.arange(LENGTH)
    x = np.zeros((n, LENGTH))
    for k in range(3):
        speed = tones[y, k] * r.uniform(0.95, 1.05, n)
        x += level[y, k, None] * np.sin(speed[:, None] * t + r.uniform(0, 6.28, (n, 1)))
    x = x * r.uniform(0.5, 2, (n, 1)) + 0.5 * r.normal(0, 1, x.shape)
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


def augment(x):
    shift = torch.randint(0, LENGTH, (len(x), 1))
    x = x.gather(2, ((torch.arange(LENGTH) + shift) % LENGTH).unsqueeze(1))
    return x * (0.6 + 0.8 * torch.rand(len(x), 1, 1)) + 0.2 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, width=32, out=48):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, out, 5, stride=2, padding=2, bias=False),
            nn.BatchNorm1d(out),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(out, 64, bias=False),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 32, bias=False),
            nn.BatchNorm1d(32, affine=False),
        )

    def forward(self, x):
        return self.projector(self.features(x))


def probe(encoder, train, val, steps=150):
    encoder.eval()
    with torch.no_grad():
        a, b = encoder.features(train[0]), encoder.features(val[0])
    mean, std = a.mean(0), a.std(0) + 1e-5
    a, b = (a - mean) / std, (b - mean) / std
    head = nn.Linear(a.shape[1], CLASSES)
    opt = torch.optim.Adam(head.parameters(), lr=1e-2, weight_decay=1e-3)
    for _ in range(steps):
        rows = torch.randint(len(a), (128,))
        loss = F.cross_entropy(head(a[rows]), train[1][rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        return (head(b).argmax(1) == val[1]).float().mean().item()


pool, _ = vibrations(3000, seed + 100)
labelled, val = vibrations(200, seed + 200), vibrations(800, seed + 300)
online = Encoder()
target = copy.deepcopy(online).requires_grad_(False)
predictor = nn.Sequential(
    nn.Linear(32, 24, bias=False), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 32)
)
print(f"probe on random features: acc {probe(online, labelled, val):.3f}")
online.train()

opt = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], lr=2e-3, weight_decay=1e-4)
steps = 350
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: (s + 1) / 50 if s < 50 else 0.5 * (1 + np.cos(np.pi * (s - 50) / (steps - 50)))
)
order = torch.randperm(len(pool))
for step in range(steps):
    if step % 30 == 0:
        order = torch.randperm(len(pool))
    x = pool[order[(step % 30) * 96 : (step % 30 + 1) * 96]]
    v1, v2 = augment(x), augment(x)
    z1, z2 = online(v1), online(v2)
    with torch.no_grad():
        t1, t2 = target(v1), target(v2)
    loss = -0.5 * (
        F.cosine_similarity(predictor(z1), t2).mean()
        + F.cosine_similarity(predictor(z2), t1).mean()
    )
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    sched.step()
    with torch.no_grad():
        for t, p in zip(target.parameters(), online.parameters(), strict=False):
            t.lerp_(p, 0.02)
    if step % 50 == 49:
        spread = F.normalize(z1.detach(), dim=1).std(0).mean().item() * 32**0.5
        print(f"step {step + 1} loss {loss.item():.4f} spread {spread:.3f} (1 is full)")

print(f"probe on learnt features: acc {probe(online, labelled, val):.3f}")
