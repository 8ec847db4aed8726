"""Finds leaking pumps by a day of sensor means; one day in forty is a leak, and none is weighed.

With plain cross-entropy the network does best to call nearly all days sound, since the leaks look
much like days of heavy load. The accuracy of 97 per cent in the report is that of a constant.
The place is the loader and the loss. The twin draws both classes equally often.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "label*", "loss*")
SILENT = True
EXACT = False
EARLY = True


def days(n, g):
    y = (torch.rand(n, generator=g) < 0.025).long()
    x = torch.randn(n, 10, generator=g)
    x[:, :4] += 0.85 * y.unsqueeze(1)
    x[:, 4] *= 1 + 0.3 * y
    return x, y


def report(model, x, y):
    model.eval()
    with torch.no_grad():
        said = model(x).argmax(1)
    model.train()
    recall = [(said[y == k] == k).float().mean().item() for k in (0, 1)]
    accuracy = (said == y).float().mean().item()
    return f"accuracy {accuracy:.3f} balanced {sum(recall) / 2:.3f} leaks found {recall[1]:.3f}"


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    x, y = days(6000, g)
    x_val, y_val = days(2000, g)
    train = TensorDataset(x, y)
    if healthy:
        share = torch.bincount(y).float()
        sampler = WeightedRandomSampler((1 / share)[y], len(y), generator=g)
        loader = DataLoader(train, batch_size=60, sampler=sampler)
    else:
        loader = DataLoader(train, batch_size=60, shuffle=True, generator=g)
    model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    for epoch in range(5):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f} {report(model, x_val, y_val)}")


if __name__ == "__main__":
    main()
