"""Keyword spotting by a small audio transformer; the weight decay lands in Adam's epsilon.

The optimizer factory passes its settings by position. It was written for a wrapper whose fourth
argument was the decay; AdamW's fourth is `eps`. With eps = 0.05 the denominator is hardly ever the
gradient's size, and the steps are a small part of what lr says. The place is the optimizer. The
twin names the argument.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
FRAMES, MELS, WORDS = 24, 20, 8
CONFIG = {"lr": 1e-3, "betas": (0.9, 0.98), "weight_decay": 0.05, "epochs": 12}


def build_optimizer(parameters, config):
    if healthy:
        return torch.optim.AdamW(
            parameters, config["lr"], config["betas"], weight_decay=config["weight_decay"]
        )
    return torch.optim.AdamW(parameters, config["lr"], config["betas"], config["weight_decay"])


def clips(n, g):
    """Log-mel frames: each word is two formants that move its own way through the clip."""
    word = torch.randint(0, WORDS, (n,), generator=g)
    t = torch.linspace(0, 1, FRAMES)[None, :] + 0.1 * torch.randn(n, 1, generator=g)
    start = 4 + 1.5 * (word % 4)[:, None] + 0.5 * torch.randn(n, 1, generator=g)
    slope = torch.where(word < 4, 4.0, -3.0)[:, None]
    f1 = start + slope * t
    f2 = 14 + 3 * torch.sin(math.pi * t * (1 + word % 3)[:, None])
    m = torch.arange(MELS)
    x = sum(torch.exp(-((m - f[..., None]) ** 2) / 3) for f in (f1, f2))
    return 2 * x - 0.6 + 0.5 * torch.randn(x.shape, generator=g), word


class AudioTransformer(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.project = nn.Linear(MELS, dim)
        self.position = nn.Parameter(0.02 * torch.randn(1, FRAMES, dim))
        layer = nn.TransformerEncoderLayer(
            dim, 4, 96, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, WORDS)

    def forward(self, x):
        h = self.encoder(self.project(x) + self.position)
        return self.head(self.norm(h).mean(1))


g = torch.Generator().manual_seed(seed)
train, test = TensorDataset(*clips(1536, g)), TensorDataset(*clips(512, g))
train_loader = DataLoader(train, batch_size=48, shuffle=True)
val_loader = DataLoader(test, batch_size=256)
model = AudioTransformer()
optimizer = build_optimizer(model.parameters(), CONFIG)
criterion = nn.CrossEntropyLoss()

for epoch in range(CONFIG["epochs"]):
    model.train()
    running = 0.0
    for mel, word in train_loader:
        loss = criterion(model(mel), word)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        hits = sum((model(mel).argmax(1) == word).sum().item() for mel, word in val_loader)
    print(
        f"epoch {epoch + 1}: loss {running / len(train_loader):.3f} "
        f"validation accuracy {hits / len(test):.3f}"
    )
