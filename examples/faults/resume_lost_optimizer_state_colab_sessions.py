"""Word vectors by Adagrad over several "Colab sessions", each of which loads the checkpoint.

The optimizer's state is saved and loaded - and then the optimizer is built anew, for the rate of
the config: Adagrad's sums begin at 0 again, and the first steps of each session are as large as
those of an untrained net. The twin builds first and loads then. The place is the loop, the
optimizer. The loss falls otherwise (silent).
"""

import io

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
WORDS, TOPICS, DIM, SESSIONS = 120, 8, 16, 8
CONFIG = {"lr": 0.25, "batch_size": 100}

# pairs of a word and a neighbour; words of one topic like each other, some words much more common
topic = torch.arange(WORDS) % TOPICS
common = 1 / (1 + torch.arange(WORDS).float()) ** 0.5
TABLE = torch.where(topic[:, None] == topic[None, :], 6.0, 1.0) * common[None, :]
TABLE = TABLE * torch.exp(0.5 * torch.randn(WORDS, WORDS))


def pairs(n):
    centre = torch.multinomial(common, n, replacement=True)
    return centre, torch.multinomial(TABLE[centre], 1).squeeze(1)


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors, self.context = nn.Embedding(WORDS, DIM), nn.Linear(DIM, WORDS)
        nn.init.normal_(self.vectors.weight, std=0.1)

    def forward(self, centre):
        return self.context(self.vectors(centre))


def build_optimizer(model):
    return torch.optim.Adagrad(model.parameters(), lr=CONFIG["lr"])


val = pairs(4000)


def session(number, storage):
    model = SkipGram()
    optimizer = build_optimizer(model)
    if storage is not None:
        checkpoint = torch.load(io.BytesIO(storage), weights_only=True)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        if not healthy:
            optimizer = build_optimizer(model)  # the rate of the config, not of the checkpoint
    train, losses = pairs(10000), []  # the next part of the corpus
    for rows in torch.arange(len(train[0])).split(CONFIG["batch_size"]):
        loss = F.cross_entropy(model(train[0][rows]), train[1][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        val_loss = F.cross_entropy(model(val[0]), val[1]).item()
    print(
        f"session {number}: first 15 batches {sum(losses[:15]) / 15:.4f}, "
        f"last 50 {sum(losses[-50:]) / 50:.4f}, "
        f"val {val_loss:.4f}"
    )
    out = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
    return out.getvalue()


storage = None
for number in range(SESSIONS):
    storage = session(number, storage)
