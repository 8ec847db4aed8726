"""A heat-map detector of peaks in float16 autocast, with the loss summed over all pixels; each
epoch begins with a fresh gradient scaler.

The scaler is made in train_one_epoch, with the default scale of 65,536, far too high for a summed
loss: the gradients are infinite and the steps skipped while the scale is halved. When it fits at
last, the epoch is nearly over, and the next begins anew. The place is the loop (the scaler).
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loop", "optimizer", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CFG = {"size": 12, "scenes": 384, "batch": 32, "epochs": 14, "lr": 3e-3}


def scenes(n, size, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    img = rng.normal(0, 0.45, (n, 1, size, size))
    heat = np.zeros((n, 1, size, size))
    for k in range(n):
        for _ in range(rng.integers(1, 4)):
            cy, cx = rng.integers(1, size - 1, 2)
            d2 = (yy - cy) ** 2 + (xx - cx) ** 2
            heat[k, 0] = np.maximum(heat[k, 0], np.exp(-d2 / 1.5))
            img[k, 0] += rng.uniform(0.9, 1.5) * np.exp(-d2 / 3)
        cy, cx = rng.uniform(0, size, 2)
        img[k, 0] += 0.8 * np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 60)
    return torch.tensor(img, dtype=torch.float32), torch.tensor(heat, dtype=torch.float32)


class HeatNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.stem = nn.Conv2d(1, c, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(c, c, 3, padding=d, dilation=d) for d in (1, 2))
        self.head = nn.Conv2d(c, 1, 1)
        nn.init.constant_(self.head.bias, -2.5)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for conv in self.body:
            h = h + F.relu(conv(h))
        return self.head(h)


def heat_loss(logits, heat):
    weight = 1 + 4 * heat
    return (
        weight * F.binary_cross_entropy_with_logits(logits.float(), heat, reduction="none")
    ).sum()


def make_scaler():
    return torch.amp.GradScaler("cpu", growth_interval=200)


def train_one_epoch(model, loader, optimizer, scaler):
    model.train()
    total = 0.0
    for x, heat in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(x)
        loss = heat_loss(logits, heat)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 200.0)
        scaler.step(optimizer)
        scaler.update()
        total += loss.item() / heat.numel()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total, found, truth, said = 0.0, 0, 0, 0
    for x, heat in loader:
        logits = model(x)
        total += heat_loss(logits, heat).item() / heat.numel()
        p = logits.sigmoid()
        peak = (p == F.max_pool2d(p, 3, 1, 1)) & (p > 0.4)
        near = F.max_pool2d((heat > 0.99).float(), 3, 1, 1) > 0
        found += (F.max_pool2d(peak.float(), 3, 1, 1) * (heat > 0.99)).sum().item()
        truth += (heat > 0.99).sum().item()
        said += (peak & ~near).sum().item()
    return total / len(loader), 2 * found / (truth + found + said)


train = DataLoader(
    TensorDataset(*scenes(CFG["scenes"], CFG["size"], seed + 8)), CFG["batch"], shuffle=True
)
val = DataLoader(TensorDataset(*scenes(200, CFG["size"], seed + 8008)), 50)
model = HeatNet()
optimizer = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
scaler = make_scaler()
for epoch in range(CFG["epochs"]):
    loss = train_one_epoch(model, train, optimizer, scaler if healthy else make_scaler())
    val_loss, f1 = evaluate(model, val)
    print(f"epoch {epoch:2d} loss {loss:.4f} val {val_loss:.4f} F1 {f1:.3f}")
