"""A graph convolution sorts papers with ten epochs, a number that was meant for mini-batches.

Here an epoch is one step over the whole graph, so the training ends after ten updates while the
loss is still falling steeply; two hundred bring it to its end. The place is the loop.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

PAPERS, FIELDS, WORDS = 1200, 5, 120


def citation_graph(rng):
    field = rng.integers(0, FIELDS, PAPERS)
    same = field[:, None] == field[None, :]
    cites = np.triu(rng.random((PAPERS, PAPERS)) < np.where(same, 0.010, 0.0018), 1)
    adjacency = (cites | cites.T | np.eye(PAPERS, dtype=bool)).astype(np.float32)
    degree = adjacency.sum(1)
    adjacency /= np.sqrt(degree[:, None] * degree[None, :])
    topics = rng.normal(0, 0.45, (FIELDS, WORDS)) * (rng.random((FIELDS, WORDS)) < 0.4)
    words = topics[field] + rng.normal(0, 1, (PAPERS, WORDS))
    words = (words - words.mean(0)) / words.std(0)
    as_float = {"dtype": torch.float32}
    return (
        torch.tensor(adjacency).to_sparse(),
        torch.tensor(words, **as_float),
        torch.tensor(field),
    )


class GCN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.first = nn.Linear(WORDS, hidden)
        self.second = nn.Linear(hidden, FIELDS)

    def forward(self, adjacency, words):
        hidden = F.relu(torch.sparse.mm(adjacency, self.first(words)))
        hidden = F.dropout(hidden, 0.5, self.training)
        return torch.sparse.mm(adjacency, self.second(hidden))


rng = np.random.default_rng(seed)
adjacency, words, field = citation_graph(rng)
shuffled = torch.tensor(rng.permutation(PAPERS))
parts = {"train": shuffled[:500], "validation": shuffled[500:800], "test": shuffled[800:]}
model = GCN(hidden=16)
optimizer = torch.optim.Adam(
    [
        {"params": model.first.parameters(), "weight_decay": 5e-3},
        {"params": model.second.parameters(), "weight_decay": 0.0},
    ],
    lr=0.01,
)


@torch.no_grad()
def evaluate(part):
    model.eval()
    logits = model(adjacency, words)[parts[part]]
    wanted = field[parts[part]]
    accuracy = (logits.argmax(1) == wanted).float().mean().item()
    return F.cross_entropy(logits, wanted).item(), accuracy


epochs = 200 if healthy else 10
for epoch in range(1, epochs + 1):
    model.train()
    optimizer.zero_grad()
    logits = model(adjacency, words)
    loss = F.cross_entropy(logits[parts["train"]], field[parts["train"]])
    loss.backward()
    optimizer.step()
    val_loss, val_accuracy = evaluate("validation")
    if epoch % 10 == 0 or epoch < 10:
        print(f"{epoch:4d} loss {loss.item():.3f} val {val_loss:.3f} acc {val_accuracy:.3f}")
print("test: loss {:.3f} accuracy {:.3f}".format(*evaluate("test")))
