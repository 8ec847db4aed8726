"""Foretells from a piece of DNA whether a gene is on, and keeps the "best" weights only by name.

At the best epoch the state is kept as model.state_dict(), which are the very tensors that training
goes on to change. What is loaded at the end is the last state, after the net has learned its few
examples by heart. The place is the loop.
The twin keeps a copy.
"""

import copy

import torch
from data import arguments
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(17 + seed)
LETTERS, MOTIF = 40, torch.tensor([0, 3, 0, 3, 0, 0])


def genome(n):
    dna = torch.randint(0, 4, (n, LETTERS), generator=g)
    on = torch.rand(n, generator=g) < 0.5
    for i in torch.nonzero(on).flatten().tolist():
        at = int(torch.randint(0, LETTERS - 6, (1,), generator=g))
        keep = torch.rand(6, generator=g) < 0.9
        dna[i, at : at + 6] = torch.where(keep, MOTIF, dna[i, at : at + 6])
    wrong = torch.rand(n, generator=g) < 0.08
    return one_hot(dna, 4).float().transpose(1, 2), (on ^ wrong).long()


class Stopper:
    def __init__(self, patience):
        self.patience, self.best, self.waited, self.state = patience, float("inf"), 0, None

    def done(self, value, model):
        if value < self.best:
            self.best, self.waited = value, 0
            state = model.state_dict()
            self.state = copy.deepcopy(state) if healthy else state
        else:
            self.waited += 1
        return self.waited >= self.patience


def measure(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


(x, y), valid, test = genome(500), genome(300), genome(1500)
model = nn.Sequential(
    nn.Conv1d(4, 32, 6), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(),
    nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
stopper = Stopper(patience=14)
for epoch in range(60):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(25):
        loss = cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    val, accuracy = measure(model, *valid)
    if epoch % 4 == 0:
        print(f"epoch {epoch} loss {total:.3f} validation {val:.3f} ({accuracy:.3f})")
    if stopper.done(val, model):
        break
model.load_state_dict(stopper.state)
val, _ = measure(model, *valid)
loss, accuracy = measure(model, *test)
print(f"restored: validation {val:.3f} (best {stopper.best:.3f}) test {loss:.3f} ({accuracy:.3f})")
