"""Kind of tumour from very many genes and few patients; half of everything is dropped."""

import torch
from data import arguments
from torch import nn

ODD = "Dropout of a half on input and hidden layer makes training worse than validation; it helps."

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
weights = torch.randn(300, generator=g) * 0.28


def patients(n):
    kind = torch.randint(0, 2, (n,), generator=g)
    genes = torch.randn(n, 300, generator=g) + (kind[:, None] * 2 - 1) * weights * 0.5
    return genes, kind


x, y = patients(300)
x_val, y_val = patients(500)
model = nn.Sequential(
    nn.Dropout(0.5), nn.Linear(300, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
for epoch in range(16):
    model.train()
    for rows in torch.randperm(len(x)).split(30):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    val = nn.functional.cross_entropy(out, y_val).item()
    if epoch % 4 == 3:
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch + 1}: train {loss.item():.3f} val {val:.3f} acc {acc:.3f}")
