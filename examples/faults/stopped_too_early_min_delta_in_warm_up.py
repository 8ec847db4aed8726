"""Early stopping counts an epoch as better only if the validation loss fell by 0.1, a number from
another project whose losses were in the hundreds.

While the learning rate is still warming up the loss falls by less than that an epoch, and the
training is stopped when it has barely begun. The place is the loop: its early stopping.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = True
EXACT = False
EARLY = False


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def __call__(self, loss):
        if loss < self.best - self.min_delta:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
        return self.bad > self.patience


class Shapes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(1, 16, 7, padding=3)
        self.b = nn.Conv1d(16, 24, 5, padding=2, stride=2)
        self.head = nn.Linear(48, 3)

    def forward(self, x):
        z = torch.relu(self.a(x.transpose(1, 2)))
        z = torch.relu(self.b(z))
        return self.head(torch.cat([z.mean(2), z.amax(2)], 1))


healthy, seed = arguments(__doc__)
x, y = waves(seed, n=1600)
x_val, y_val = x[1280:], y[1280:]
model = Shapes()
optimizer = torch.optim.SGD(model.parameters(), lr=0.04, momentum=0.8)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=240)
stop = EarlyStopping(patience=4, min_delta=1e-4) if healthy else EarlyStopping(1, 0.1)
for epoch in range(30):
    model.train()
    total = 0.0
    for rows in torch.randperm(1280).split(64):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
        total += loss.item() / 20
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val = nn.functional.cross_entropy(scores, y_val).item()
        accuracy = (scores.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {total:.3f}, val loss {val:.3f}, val accuracy {accuracy:.3f}")
    if stop(val):
        print("early stopping")
        break
