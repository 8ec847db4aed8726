"""Tags of songs (multi-label) from their audio features; the head ends in a sigmoid, and the loss
has one, too.

The head was written for BCELoss. For stability the loss became `binary_cross_entropy_with_logits`,
the head stayed. "Logits" between 0 and 1 mean that no tag is ever less likely than a half. The
place is the loss (its input). The twin's head has no sigmoid.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
SONGS, FEATURES, TAGS = 3000, 20, 8
x = torch.randn(SONGS, FEATURES, generator=g)
mix = torch.randn(FEATURES, 10, generator=g) / FEATURES**0.5
score = torch.tanh(2 * x @ mix) @ torch.randn(10, TAGS, generator=g) + 0.3 * torch.randn(
    SONGS, TAGS, generator=g
)
y = (score > score.quantile(0.8, dim=0)).float()
x, x_val, y, y_val = x[:2400], x[2400:], y[:2400], y[2400:]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(FEATURES, 96), nn.ReLU(), nn.Dropout(0.3), nn.Linear(96, 48), nn.ReLU()
        )
        self.head = (
            nn.Linear(48, TAGS) if healthy else nn.Sequential(nn.Linear(48, TAGS), nn.Sigmoid())
        )

    def forward(self, song):
        return self.head(self.body(song))

    @torch.no_grad()
    def predict_tags(self, song, threshold=0.5):
        return (torch.sigmoid(self(song)) > threshold).float()


def f1(said, truth):
    hit = (said * truth).sum(0)
    return (2 * hit / (said.sum(0) + truth.sum(0)).clamp(min=1)).mean().item()


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=3e-4)
recent = []
for step, (song, tags) in enumerate(batches(x, y, size=64, steps=500, seed=seed), 1):
    model.train()
    loss = F.binary_cross_entropy_with_logits(model(song), tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss.item())
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            val = F.binary_cross_entropy_with_logits(model(x_val), y_val).item()
        print(
            f"step {step} train {sum(recent) / len(recent):.4f} val {val:.4f} "
            f"macro F1 {f1(model.predict_tags(x_val), y_val):.3f}"
        )
        recent.clear()
