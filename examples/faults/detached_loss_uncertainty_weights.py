"""Age, accent and noise level are learnt from speech-like frames by one trunk; the three losses
are weighted by learnt uncertainties.

The losses are collected into torch.tensor([...]) before the weighting, so that backward only
reaches the three log-variances: the weighted sum falls, the network never gets a gradient. The
place is the loss (UncertaintyWeighting), hence the whole trunk.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("detached_graph", "missing_gradient")
PLACE = ("loss", "loop", "trunk*", "heads*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FRAMES, MELS, ACCENTS = 30, 20, 6


def recordings(n, g, accents):
    age = torch.rand(n, generator=g) * 2 - 1
    accent = torch.randint(0, ACCENTS, (n,), generator=g)
    snr = torch.rand(n, generator=g)
    mel, t = torch.arange(MELS).float(), torch.arange(FRAMES).float()
    centre = (
        10
        - 3 * age[:, None]
        + 3.0 * torch.sin(accents[accent, 0, None] * t + 6.28 * torch.rand(n, 1, generator=g))
    )
    second = (
        centre
        + 4
        + 1.5 * torch.cos(accents[accent, 1, None] * t + 6.28 * torch.rand(n, 1, generator=g))
    )
    spec = torch.exp(-((mel - centre[..., None]) ** 2) / 4) + 0.7 * torch.exp(
        -((mel - second[..., None]) ** 2) / 3
    )
    spec = spec + (0.15 + 0.35 * snr)[:, None, None] * torch.randn(spec.shape, generator=g)
    return spec, age, accent, (snr - 0.5) * 3.4


class Trunk(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.conv1 = nn.Conv1d(MELS, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)

    def forward(self, x):
        h = F.relu(self.conv1(x.transpose(1, 2)))
        h = F.relu(self.conv2(h)) + h
        out, _ = self.gru(h.transpose(1, 2))
        return torch.cat([out.mean(1), out.std(1)], 1)


class SpeakerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.heads = nn.ModuleDict(
            {
                "age": nn.Linear(160, 1),
                "accent": nn.Linear(160, ACCENTS),
                "noise": nn.Linear(160, 1),
            }
        )

    def forward(self, x):
        h = self.trunk(x)
        return {k: head(h) for k, head in self.heads.items()}


def task_losses(out, age, accent, noise):
    return {
        "age": F.mse_loss(out["age"].squeeze(1), age * 1.73),
        "accent": F.cross_entropy(out["accent"], accent),
        "noise": F.mse_loss(out["noise"].squeeze(1), noise),
    }


class UncertaintyWeighting(nn.Module):
    """Kendall et al. 2018: sum of exp(-s) L + s / 2, here with one s for each task."""

    def __init__(self, names):
        super().__init__()
        self.names = names
        self.log_var = nn.Parameter(torch.zeros(len(names)))

    def forward(self, losses):
        values = [losses[k] for k in self.names]
        stacked = (
            torch.stack(values) if healthy else torch.tensor([float(v.detach()) for v in values])
        )
        return (torch.exp(-self.log_var) * stacked + 0.5 * self.log_var).sum()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    sums, hit, n = {"age": 0.0, "accent": 0.0, "noise": 0.0}, 0, 0
    for x, age, accent, noise in loader:
        out = model(x)
        for k, v in task_losses(out, age, accent, noise).items():
            sums[k] += v.item() * len(x)
        hit += (out["accent"].argmax(1) == accent).sum().item()
        n += len(x)
    return {k: v / n for k, v in sums.items()}, hit / n


g = torch.Generator().manual_seed(23 + seed)
accents = torch.stack(
    [
        torch.linspace(0.15, 1.05, ACCENTS),
        torch.linspace(0.2, 0.9, ACCENTS)[torch.randperm(ACCENTS, generator=g)],
    ],
    1,
)
x, age, accent, noise = recordings(3000, g, accents)
xv, *rest = recordings(400, g, accents)
mean, std = x.mean((0, 1)), x.std((0, 1))
train_loader = DataLoader(TensorDataset((x - mean) / std, age, accent, noise), 50, shuffle=True)
val_loader = DataLoader(TensorDataset((xv - mean) / std, *rest), 200)

model, weighting = SpeakerNet(), UncertaintyWeighting(["age", "accent", "noise"])
optimizer = torch.optim.Adam(
    [{"params": model.parameters(), "lr": 2e-3}, {"params": weighting.parameters(), "lr": 5e-3}]
)
EPOCHS = 8
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
    optimizer, EPOCHS * len(train_loader), eta_min=1e-5
)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, *targets in train_loader:
        loss = weighting(task_losses(model(xb), *targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    val, acc = validate(model, val_loader)
    weights = torch.exp(-weighting.log_var.detach()).tolist()
    print(
        f"epoch {epoch} loss {total / len(train_loader):.3f} | val age {val['age']:.3f} accent {val['accent']:.3f} ({acc:.3f}) "  # noqa: E501
        f"noise {val['noise']:.3f} | weights " + " ".join(f"{w:.2f}" for w in weights)
    )
