"""Finding flares in stellar light curves with attention pooling: the softmax runs over one score.

The scorer gives one number per moment, shape (batch, time, 1). `softmax(dim=-1)`, right in the head
with many queries from which it was copied, normalises each number by itself: every weight is 1, no
gradient reaches the scorer, and the pooling is a plain sum over the night. The loss falls all the
same. The place is the module `score`. The twin normalises over time.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("score",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def nights(count, g, length=60):
    """Brightness and two colours per moment; the colours of a flare tell its kind, one of three."""
    phase, period = (
        6.283 * torch.rand(count, 1, generator=g),
        15 + 30 * torch.rand(count, 1, generator=g),
    )
    since = torch.arange(length) - torch.randint(3, length - 8, (count, 1), generator=g)
    flare = (
        (2.5 + torch.rand(count, 1, generator=g))
        * torch.exp(-since.clamp(min=0) / 2.5)
        * (since >= 0)
    )
    flux = 0.5 * (6.283 * torch.arange(length) / period + phase).sin() + flare
    kind = torch.randint(0, 3, (count,), generator=g)
    tint = torch.tensor([[1.5, 0.0], [-0.8, 1.3], [-0.8, -1.3]])[kind][:, None]
    colours = torch.randn(count, length, 2, generator=g) + tint * (flare > 1.0)[..., None]
    return torch.cat(
        [(flux + 0.2 * torch.randn(count, length, generator=g))[..., None], colours], -1
    ), kind


class Pooled(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.value = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width))
        self.score = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3))

    def forward(self, moments):
        weight = F.softmax(self.score(moments), dim=1 if healthy else -1)
        return self.out((weight * self.value(moments[..., 1:])).sum(1))


g = torch.Generator().manual_seed(seed)
loader = DataLoader(TensorDataset(*nights(2500, g)), batch_size=50, shuffle=True, generator=g)
night_val, kind_val = nights(800, g)
model = Pooled()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8 * len(loader))
for epoch in range(8):
    model.train()
    seen = 0.0
    for night, kind in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(night), kind)
        loss.backward()
        optimizer.step()
        schedule.step()
        seen += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        logits = model(night_val)
        right = (logits.argmax(1) == kind_val).float().mean()
    print(
        f"epoch {epoch} loss {seen:.4f} val loss {F.cross_entropy(logits, kind_val):.4f} "
        f"validation accuracy {right:.3f}"
    )
