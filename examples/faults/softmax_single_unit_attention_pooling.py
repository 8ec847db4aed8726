"""Attention pooling over the frames of a recording, normalised over the wrong dimension.

The scores have shape (batch, frames, 1) and softmax goes over the last one: each weight is 1, the
pool is a plain sum, the scorer never gets a gradient. The twin normalises over the frames. The
place is the scorer or the pooling module.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("pool", "pool.softmax", "pool.scorer", "pool.scorer.0", "pool.scorer.2", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class AttentionPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scorer = nn.Sequential(nn.Linear(dim, 16), nn.Tanh(), nn.Linear(16, 1))
        self.softmax = nn.Softmax(dim=1 if healthy else -1)

    def forward(self, frames):
        weights = self.softmax(self.scorer(frames))
        return (weights * frames).sum(dim=1)


class KeywordSpotter(nn.Module):
    def __init__(self, bands=12, keywords=6):
        super().__init__()
        self.frontend = nn.Conv1d(bands, 32, 3, padding=1)
        self.pool = AttentionPool(32)
        self.classify = nn.Linear(32, keywords)

    def forward(self, spectrogram):
        frames = F.gelu(self.frontend(spectrogram)).transpose(1, 2)
        return self.classify(self.pool(frames))


def recordings(n, g):
    patterns = torch.randn(6, 12, 3, generator=torch.Generator().manual_seed(77)) * 1.3
    x = torch.randn(n, 12, 80, generator=g)
    y = torch.randint(0, 6, (n,), generator=g)
    at = torch.randint(0, 77, (n,), generator=g)
    for i in range(n):
        x[i, :, at[i] : at[i] + 3] += patterns[y[i]]
    return x, y


g = torch.Generator().manual_seed(seed + 10)
x, y = recordings(3000, g)
x_val, y_val = recordings(600, g)
model = KeywordSpotter()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=64, shuffle=True
)
for epoch in range(8):
    model.train()
    for spectrogram, keyword in loader:
        loss = F.cross_entropy(model(spectrogram), keyword)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = (out.argmax(1) == y_val).float().mean().item()
    val = F.cross_entropy(out, y_val).item()
    print(f"epoch {epoch}: train {loss.item():.3f} val {val:.3f} accuracy {accuracy:.3f}")
