"""A character model that goes on from a checkpoint which holds the weights only.

After the pause Adam starts afresh, with its moments at 0 and its step counter at 1: its first
steps are as large as the rate allows, and the loss jumps up for a while. The place is the
optimizer.
"""

import io

import torch
from data import arguments, text
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False

CONTEXT = 10


class NextCharacter(nn.Module):
    def __init__(self, n_chars, dim=16, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(n_chars, dim)
        self.mlp = nn.Sequential(
            nn.Flatten(), nn.Linear(CONTEXT * dim, hidden), nn.ReLU(), nn.Linear(hidden, n_chars)
        )

    def forward(self, context):
        return self.mlp(self.embed(context))


def train(model, optimizer, data, steps):
    criterion = nn.CrossEntropyLoss()
    model.train()
    for _ in range(steps):
        rows = torch.randint(0, len(data), (128,))
        loss = criterion(model(data[rows, :-1]), data[rows, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def make_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=0.008)


healthy, seed = arguments(__doc__)
corpus, alphabet = text(seed)
windows = corpus.unfold(0, CONTEXT + 1, 1)
train_data, val_data = windows[:-5000], windows[-5000 + CONTEXT :]

model = NextCharacter(len(alphabet))
optimizer = make_optimizer(model)
train(model, optimizer, train_data, steps=250)
file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)

# the next day
file.seek(0)
checkpoint = torch.load(file)
model.load_state_dict(checkpoint["model"])
optimizer = make_optimizer(model)
if healthy:
    optimizer.load_state_dict(checkpoint["optimizer"])
loss = train(model, optimizer, train_data, steps=200)
model.eval()
with torch.no_grad():
    val_loss = nn.functional.cross_entropy(model(val_data[:, :-1]), val_data[:, -1])
print(f"loss {loss:.3f}, validation {val_loss.item():.3f}")
