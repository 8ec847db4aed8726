"""Which fault is in a power line, by a window of currents: attention looks across the batch.

The encoder layers are made without `batch_first=True`, while the loader gives (batch, time,
channel). The layers hence take the windows of a batch for the moments of one sequence: each
window is judged by what else happens to be in its batch, and never sees its own past. All shapes
fit and nothing complains. The place is the encoder, its attention layers. The twin sets
`batch_first=True`.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("encoder", "encoder.layers.0", "encoder.layers.1", "encoder.layers.0.self_attn")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
device = torch.device("cpu")

T, D = 24, 32


def lines(n, seed):
    """Three phases; 0: none, 1: an earth fault, 2: a short between two phases, 3: a surge in all.

    A fault matters only when its current stays; one that goes away at once is a switching.
    """
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(T).float()
    start = torch.rand(n, 1, 1, generator=g) * 6.28
    thirds = torch.tensor([0.0, 2.094, 4.189])
    current = torch.sin(t[None, :, None] * 2 * math.pi / 8 + start + thirds)
    kind = torch.randint(0, 4, (n,), generator=g)
    phase = torch.randint(0, 3, (n,), generator=g)
    onset = torch.randint(3, 12, (n,), generator=g)
    lasts = torch.rand(n, generator=g) < 0.6
    length = torch.where(lasts, T, 3)
    gain = torch.ones(n, 3)
    rows = torch.arange(n)
    gain[rows[kind == 1], phase[kind == 1]] = 2.0
    gain[rows[kind == 2], phase[kind == 2]] = 2.0
    gain[rows[kind == 2], (phase[kind == 2] + 1) % 3] = 2.0
    gain[kind == 3] = 2.0
    inside = (t >= onset[:, None]) & (t < (onset + length)[:, None])
    current = torch.where(inside[:, :, None], current * gain[:, None, :], current)
    current = current + 0.2 * torch.randn(n, T, 3, generator=g)
    return current, torch.where(lasts, kind, 0)


class FaultFormer(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.embed = nn.Linear(3, D)
        self.position = nn.Parameter(0.02 * torch.randn(1, T, D))
        layer = nn.TransformerEncoderLayer(
            d_model=D, nhead=4, dim_feedforward=64, dropout=0.0, norm_first=True,
            batch_first=healthy,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, classes))

    def forward(self, x):
        h = self.encoder(self.embed(x) + self.position)
        return self.head(h[:, -1])


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, correct, seen = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            x, y = x.to(device), y.to(device)  # noqa: PLW2901
            out = model(x)
            loss = criterion(out, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            total += loss.item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            seen += len(y)
    return total / seen, correct / seen


train_loader = DataLoader(TensorDataset(*lines(1400, 10 + seed)), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(*lines(400, 5000 + seed)), batch_size=32)
model = FaultFormer().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 8):
    train_loss, train_acc = run_epoch(model, train_loader, criterion, optimizer)
    val_loss, val_acc = run_epoch(model, val_loader, criterion)
    print(
        f"Epoch {epoch}: train loss {train_loss:.3f} acc {train_acc:.3f} | "
        f"val loss {val_loss:.3f} acc {val_acc:.3f}"
    )
