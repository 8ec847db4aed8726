"""Trains a 1-d CNN on waves with two parameter groups for weight decay that leave out the
convolutions.

Parameters with two dimensions are to get weight decay, those with one are not; the kernels of
Conv1d have three and fall into neither group. They keep their first random values while the norms
and the head learn on top of them. The twin puts all parameters of two or more dimensions into the
first group. The place is `conv1`, `conv2`, `conv3`, `conv1.weight`, `conv2.weight`, `conv3.weight`
or the optimizer.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("conv1", "conv2", "conv3", "conv1.weight", "conv2.weight", "conv3.weight", "optimizer")
SILENT = True
EXACT = True
EARLY = True


class WaveCNN(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv1d(1, width, 5, padding=2, bias=False)
        self.norm1 = nn.BatchNorm1d(width)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2, bias=False)
        self.norm2 = nn.BatchNorm1d(width)
        self.conv3 = nn.Conv1d(width, width, 5, padding=2, bias=False)
        self.norm3 = nn.BatchNorm1d(width)
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = x.transpose(1, 2)
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        x = torch.relu(self.norm3(self.conv3(x)))
        return self.head(self.pool(x).flatten(1))


def build_optimizer(model, healthy):
    decay, no_decay = [], []
    for p in model.parameters():
        if p.ndim == 2 or (healthy and p.ndim > 2):
            decay.append(p)
        elif p.ndim == 1:
            no_decay.append(p)
    groups = [
        {"params": decay, "weight_decay": 0.01},
        {"params": no_decay, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=2e-3)


def main():
    healthy, seed = arguments(__doc__)
    x, y = waves(seed, n=2000)
    loader = DataLoader(
        TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True, drop_last=True
    )
    x_val, y_val = x[1600:], y[1600:]
    model = WaveCNN()
    optimizer = build_optimizer(model, healthy)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, 11):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val, acc = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
        print(f"epoch {epoch}: train {total / len(loader):.4f} val {val:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
