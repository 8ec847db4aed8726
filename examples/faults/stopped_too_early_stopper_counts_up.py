"""A character model of ship's logs: early stopping waits for the loss to rise.

The stopper was taken over from a classifier, where it watched accuracy, and its default is
`mode="max"`. Here it is handed the validation loss: each epoch that improves looks like a failure,
and after three of them the run ends with the curve still steep, and what it kept is the first
epoch's model. The place is the loop. The twin says `mode="min"`.
"""

import copy
import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
WINDS = ["north", "south", "east", "west"]
SEA = ["calm", "smooth", "rough", "very high"]
DEEDS = [
    "set all sails",
    "reefed the topsail",
    "sounded eleven fathoms",
    "saw a whale",
    "mended nets",
    "spoke a brig",
]


def log(days, r):
    """Entries in which the sea follows the wind's force, and the deed follows the sea."""
    lines = []
    for _ in range(days):
        force = r.randint(0, 9)
        deed = r.choice(DEEDS[:1] + DEEDS[2:4] if force < 5 else DEEDS[1:2] + DEEDS[4:])
        lines.append(f"wind {r.choice(WINDS)} force {force}, sea {SEA[force * 4 // 10]}, {deed}.\n")
    return "".join(lines)


class Stopper:
    def __init__(self, patience=3, mode="max", min_delta=0.0):
        self.patience, self.sign, self.min_delta = patience, 1 if mode == "max" else -1, min_delta
        self.best, self.bad, self.kept = None, 0, None

    def __call__(self, value, model):
        score = self.sign * value
        if self.best is None or score > self.best + self.min_delta:
            self.best, self.bad, self.kept = score, 0, copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


class Characters(nn.Module):
    def __init__(self, size, width=48):
        super().__init__()
        self.embed = nn.Embedding(size, 24)
        self.gru = nn.GRU(24, width, batch_first=True)
        self.out = nn.Linear(width, size)

    def forward(self, x):
        return self.out(self.gru(self.embed(x))[0])


written = log(750, random.Random(seed))
alphabet = sorted(set(written))
numbers = torch.tensor([alphabet.index(c) for c in written])
pieces = numbers[: len(numbers) // 33 * 33].view(-1, 33)
cut = int(0.85 * len(pieces))
train, held = pieces[:cut], pieces[cut:]

model = Characters(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
    optimizer, factor=0.3, patience=0, threshold=1e-3
)
stopper = Stopper(mode="min") if healthy else Stopper()
for epoch in range(11):
    model.train()
    for rows in torch.randperm(len(train)).split(16):
        piece = train[rows]
        loss = F.cross_entropy(model(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = F.cross_entropy(model(held[:, :-1]).flatten(0, 1), held[:, 1:].flatten()).item()
    schedule.step(val)
    print(f"epoch {epoch} loss {loss:.4f} val loss {val:.4f}")
    if stopper(val, model):
        break
model.load_state_dict(stopper.kept)
model.eval()
with torch.no_grad():
    val = F.cross_entropy(model(held[:, :-1]).flatten(0, 1), held[:, 1:].flatten())
print(f"kept model: validation perplexity {val.exp():.3f}")
