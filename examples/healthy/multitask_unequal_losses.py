"""One trunk, three heads: energy use (squared error), a machine's state (4 classes) and rare
alarms, with unlike losses and weights.

The parts differ by a factor of a hundred and the heads get gradients of very unlike size, by
choice: alarms matter little.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "losses and head gradients of very unlike sizes, one head has a very small weight"

_, seed = arguments(__doc__)
wiring = torch.randn(8, 6) * 0.6
corners = torch.randn(4, 6)


def machines(n):
    x = torch.randn(n, 8)
    hidden = torch.tanh(x @ wiring)
    energy = 2 * hidden[:, 0] * hidden[:, 1] + hidden[:, 2] + 0.1 * torch.randn(n)
    state = (hidden @ corners.T).argmax(1)
    alarm = (hidden[:, 3] + hidden[:, 4] > 0.9).float()
    return x, energy, state, alarm


class MultiTask(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.energy = nn.Linear(width, 1)
        self.state = nn.Linear(width, 4)
        self.alarm = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.energy(h).squeeze(1), self.state(h), self.alarm(h).squeeze(1)


def losses(out, energy, state, alarm):
    return torch.stack(
        [
            F.mse_loss(out[0], energy),
            F.cross_entropy(out[1], state),
            F.binary_cross_entropy_with_logits(out[2], alarm),
        ]
    )


train, val = machines(6000), machines(1000)
mean, std = train[1].mean(), train[1].std()
train[1].sub_(mean).div_(std)
val[1].sub_(mean).div_(std)
loader = DataLoader(TensorDataset(*train), batch_size=100, shuffle=True)
weights = torch.tensor([5.0, 1.0, 0.1])

model = MultiTask()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
epochs = 15
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(1, epochs + 1):
    model.train()
    total = 0.0
    for x, *targets in loader:
        loss = (weights * losses(model(x), *targets)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            out = model(val[0])
            parts = losses(out, *val[1:])
            state_acc = (out[1].argmax(1) == val[2]).float().mean()
            alarm_acc = ((out[2] > 0) == (val[3] > 0.5)).float().mean()
        print(
            f"epoch {epoch}: loss {total / len(loader):.3f}, "
            f"val {(weights * parts).sum():.3f}: energy mse {parts[0]:.3f}, "
            f"state acc {state_acc:.3f}, alarm acc {alarm_acc:.3f}"
        )
