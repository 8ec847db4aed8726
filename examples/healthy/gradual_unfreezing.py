"""Transfer with gradual unfreezing: head first, then the last block, then all, at falling rates."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "layers are frozen for a time, the optimizer is made anew at each stage on purpose"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
low, high = y < 6, y >= 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.block2 = nn.Sequential(nn.Linear(48, 32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, rows):
        return self.head(self.block2(self.block1(rows)))


def train(model, x, y, steps, lr):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=lr)
    for rows, labels in batches(x, y, size=32, steps=steps, seed=seed):
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


model = Net()
train(model, x[low], y[low], 150, 3e-3)
model.head = nn.Linear(32, 10)
for stage, parts in enumerate(([model.head], [model.head, model.block2], [model])):
    for p in model.parameters():
        p.requires_grad = False
    for part in parts:
        for p in part.parameters():
            p.requires_grad = True
    loss = train(model, x[high], y[high], 80, (3e-3, 1e-3, 3e-4)[stage])
    print(f"stage {stage}: loss {loss:.3f}")
