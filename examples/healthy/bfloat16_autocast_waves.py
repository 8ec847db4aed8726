"""Trains a 1-d CNN on noisy waves in bfloat16 by autocast, with float32 weights and no loss scale.

bfloat16 has the exponent range of float32, so that no loss scale is needed; the loss is computed in
float32.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "activations in bfloat16 and no gradient scaler"


class WaveNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.block1 = nn.Sequential(
            nn.Conv1d(1, width, 7, padding=3), nn.BatchNorm1d(width), nn.GELU()
        )
        self.block2 = nn.Sequential(
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.GELU()
        )
        self.head = nn.Linear(2 * width, 3)

    def forward(self, x):
        h = self.block2(self.block1(x.transpose(1, 2)))
        return self.head(torch.cat([h.mean(-1), h.amax(-1)], 1))


def main():
    _, seed = arguments(__doc__)
    x, y = waves(seed, n=2000)
    train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=200)
    model = WaveNet()
    criterion = nn.CrossEntropyLoss()
    epochs = 9
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=epochs * len(train_loader)
    )
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in train_loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(xb)
            loss = criterion(out.float(), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        val, hits, n = 0.0, 0, 0
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            for xb, yb in val_loader:
                out = model(xb).float()
                val += criterion(out, yb).item() * len(xb)
                hits += (out.argmax(1) == yb).sum().item()
                n += len(xb)
        print(
            f"epoch {epoch} train {total / len(train_loader):.4f} "
            f"val {val / n:.4f} acc {hits / n:.3f}"
        )


if __name__ == "__main__":
    main()
