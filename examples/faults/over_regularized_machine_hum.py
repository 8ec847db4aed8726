"""Machine faults by their hum, with a 1-D conv net; Adam gets the large weight decay of AdamW.

A recipe for AdamW says weight decay 0.2, and here it is torch.optim.Adam that gets it. There it is
an L2 penalty inside the gradient, so the weights shrink to nearly nothing and all clips get nearly
the same scores. The place is the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer", "*.weight", "model")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

CONFIG = {
    "epochs": 16,
    "batch_size": 40,
    "lr": 2e-3,
    "weight_decay": 1e-4 if healthy else 0.2,
    "states": ("good", "worn bearing", "loose belt", "unbalanced"),
}


def hum(n, length=128):
    """Short clips of a motor: a base tone, with what each fault adds to it, and noise."""
    state = torch.randint(0, 4, (n,))
    t = torch.arange(length).float()
    base = 0.22 + 0.06 * torch.rand(n, 1)
    phase = 2 * math.pi * torch.rand(n, 1)
    clip = torch.sin(base * t + phase)
    knock = torch.exp(-((t + 40 * torch.rand(n, 1)) % 18) / 2.5)
    ripple = torch.sin(5.1 * base * t + phase)
    swell = torch.sin(0.055 * t + phase)
    extra = torch.stack([torch.zeros_like(clip), 1.2 * knock, 0.6 * ripple, swell * clip])
    clip = clip + extra[state, torch.arange(n)] + 0.45 * torch.randn(n, length)
    return ((clip - clip.mean()) / clip.std()).unsqueeze(1), state


class HumNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2, padding=4),
            nn.ReLU(),
            nn.Conv1d(16, 32, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(32, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(4),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(128, 48), nn.ReLU(), nn.Linear(48, classes)
        )

    def forward(self, clip):
        return self.classifier(self.features(clip))


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, right, seen = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for clip, state in loader:
            scores = model(clip)
            loss = criterion(scores, state)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(state)
            right += (scores.argmax(1) == state).sum().item()
            seen += len(state)
    return total / seen, right / seen


dataset = TensorDataset(*hum(2000))
train_part, val_part = random_split(dataset, [1600, 400])
train_loader = DataLoader(train_part, batch_size=CONFIG["batch_size"], shuffle=True)
val_loader = DataLoader(val_part, batch_size=200)

model = HumNet(len(CONFIG["states"]))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(
    model.parameters(), lr=CONFIG["lr"], weight_decay=CONFIG["weight_decay"]
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CONFIG["epochs"])

for epoch in range(CONFIG["epochs"]):
    train_loss, train_acc = run_epoch(model, train_loader, criterion, optimizer)
    val_loss, val_acc = run_epoch(model, val_loader, criterion)
    scheduler.step()
    print(
        f"[{epoch + 1:02d}/{CONFIG['epochs']}] train {train_loss:.4f} ({train_acc:.3f})"
        f" | val {val_loss:.4f} ({val_acc:.3f})"
    )
