"""Promoters in DNA by a small Transformer, AdamW with warm-up and cosine, decay only on matrices.

The usual recipe: weight decay for matrices but not for biases and norms, a linear warm-up of a
tenth of the steps and a cosine down to nearly nothing, gradients clipped at 1.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the rate starts at a hundredth and ends near zero, and half the parameters have no decay"

_, seed = arguments(__doc__)
BASES, LENGTH = 4, 40
BOX1, BOX2 = torch.tensor([3, 0, 3, 0, 0, 3]), torch.tensor([3, 3, 2, 0, 1, 0])  # TATAAT, TTGACA


def sequences(n):
    """A promoter has both boxes, 5 to 9 bases apart, each with a wrong base now and then."""
    x = torch.randint(0, BASES, (n, LENGTH))
    y = torch.randint(0, 2, (n,))
    for i in range(n):
        start, gap = int(torch.randint(2, 16, ())), int(torch.randint(5, 10, ()))
        for box, at in ((BOX2, start), (BOX1, start + 6 + gap)):
            if y[i] or torch.rand(()) < 0.1:
                wrong = torch.rand(6) < 0.06
                x[i, at : at + 6] = torch.where(wrong, torch.randint(0, BASES, (6,)), box)
    return x, y


class PromoterNet(nn.Module):
    def __init__(self, width=24, layers=1):
        super().__init__()
        self.stem = nn.Conv1d(BASES, width, 7, padding=3)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.2, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, x):
        x = nn.functional.one_hot(x, BASES).float().transpose(1, 2)
        x = nn.functional.gelu(self.stem(x)).transpose(1, 2) + self.place
        return self.head(self.norm(self.encoder(x)).mean(1))


train = DataLoader(TensorDataset(*sequences(3000)), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(*sequences(500)), batch_size=250)
model, epochs = PromoterNet(), 6
matrices = [p for p in model.parameters() if p.ndim >= 2]
others = [p for p in model.parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], lr=3e-3
)
steps = epochs * len(train)
warm = steps // 10


def factor(step):
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
criterion = nn.CrossEntropyLoss()
for epoch in range(epochs):
    model.train()
    total = 0.0
    for x, y in train:
        loss = criterion(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(x) for x, _ in val])
    truth = torch.cat([y for _, y in val])
    accuracy = (scores.argmax(1) == truth).float().mean().item()
    print(
        f"epoch {epoch} train {total:.3f} val {criterion(scores, truth):.3f} "
        f"accuracy {accuracy:.3f}"
    )
