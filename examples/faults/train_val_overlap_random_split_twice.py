"""Churn of customers with noisy labels; each loader calls random_split itself, so the two draw
different permutations.

Four fifths of the validation rows are training rows. The network learns them by heart, and the
validation accuracy rises far beyond what new customers give. The loss falls all the same. The place
is the loader. Exact.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_val_overlap"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def customers(n):
    x = torch.randn(n, 14)
    score = 1.2 * x[:, 0] - 0.9 * x[:, 1] + 0.8 * x[:, 2] * x[:, 3] + 0.5 * x[:, 4].abs()
    churn = torch.rand(n) < torch.sigmoid(1.3 * (score - 0.4))
    return TensorDataset(x, churn.float())


def get_loader(dataset, part, batch_size):
    generator = torch.Generator().manual_seed(seed) if healthy else None
    train, val = random_split(dataset, [0.8, 0.2], generator=generator)
    if part == "train":
        return DataLoader(train, batch_size=batch_size, shuffle=True)
    return DataLoader(val, batch_size=batch_size)


def evaluate(model, loader):
    model.eval()
    loss = right = count = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x).squeeze(1)
            loss += nn.functional.binary_cross_entropy_with_logits(out, y, reduction="sum").item()
            right += ((out > 0) == (y > 0.5)).sum().item()
            count += len(y)
    return loss / count, right / count


data, new_customers = customers(1000), customers(1000)
train_loader = get_loader(data, "train", 32)
val_loader = get_loader(data, "val", 100)
model = nn.Sequential(
    nn.Linear(14, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.02)
best, bad, kept = float("inf"), 0, None
for epoch in range(24):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    val_loss, accuracy = evaluate(model, val_loader)
    print(f"epoch {epoch:2d} val loss {val_loss:.3f} val accuracy {accuracy:.3f}")
    if val_loss < best:
        best, bad = val_loss, 0
        kept = {k: v.clone() for k, v in model.state_dict().items()}, accuracy
    else:
        bad += 1
        if bad == 3:
            break
model.load_state_dict(kept[0])
new_loss, new_accuracy = evaluate(model, DataLoader(new_customers, batch_size=250))
print(
    f"kept: val loss {best:.3f} accuracy {kept[1]:.3f}; new customers {new_loss:.3f} "
    f"{new_accuracy:.3f}"
)
