"""A recurrent net that tells waves apart; the loop steps the schedule, and not the optimizer.

`scheduler.step()` was to come after `optimizer.step()` and took its line. The rate falls as it
should, and nothing is learned. The place is the loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(40 + seed)


def waves(number):
    kind = torch.randint(3, (number,), generator=g)
    time = torch.linspace(0, 1, 24)
    phase = 6.3 * torch.rand(number, 1, generator=g)
    wave = torch.sin((2 + 3 * kind[:, None]) * 3.14 * time + phase)
    return (wave + 0.3 * torch.randn(number, 24, generator=g)).unsqueeze(2), kind


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0].mean(1))


x, y = waves(960)
x_val, y_val = waves(400)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 450)
criterion = nn.CrossEntropyLoss()
for epoch in range(15):
    order = torch.randperm(len(x), generator=g)
    for rows in order.split(32):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        if healthy:
            optimizer.step()
        scheduler.step()
with torch.no_grad():
    accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.3f} | validation accuracy {accuracy:.3f}")
