"""Name of a card hand; the model ends in a softmax and the loss applies another one.

The model was to give out probabilities, so the last layer is nn.Softmax. CrossEntropyLoss takes
raw scores and does that itself; applied to numbers between 0 and 1 it can never come near zero,
and its gradients are weak. It still learns, slowly.
The place is the output of the model.
The twin ends in the linear layer.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("output*", "loss*", "5")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def deal(n, g):
    """Three dice-like cards: nothing, a pair, a straight or three of a kind, one-hot."""
    cards = torch.randint(0, 8, (n * 12, 3), generator=g)
    low, middle, high = cards.sort(1).values.T
    name = torch.zeros(len(cards), dtype=torch.long)
    name[(low == middle) | (middle == high)] = 1
    name[(middle == low + 1) & (high == middle + 1)] = 2
    name[low == high] = 3
    name[(name == 0) & (low + middle + high < 9)] = 4
    keep = torch.cat([torch.nonzero(name == k).squeeze(1)[: n // 5] for k in range(5)])
    keep = keep[torch.randperm(len(keep), generator=g)]
    return nn.functional.one_hot(cards[keep], 8).flatten(1).float(), name[keep]


g = torch.Generator().manual_seed(seed)
x, y = deal(4000, g)
cut = int(0.8 * len(x))
train_loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=64, shuffle=True)

layers = [nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5)]
if not healthy:
    layers.append(nn.Softmax(dim=1))
model = nn.Sequential(*layers)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(15):
    running_loss = 0.0
    for i, data in enumerate(train_loader, 0):
        inputs, labels = data
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    if epoch % 3 == 2:
        with torch.no_grad():
            _, predicted = torch.max(model(x[cut:]), 1)
        acc = 100 * (predicted == y[cut:]).sum().item() / len(y[cut:])
        print(f"[{epoch + 1}] loss: {running_loss / len(train_loader):.3f} accuracy: {acc:.1f} %")
print("Finished Training")
