"""Node classification in a citation-like graph with the label trick: known labels are an input;
the own label is among them.

The labels of the training nodes are appended to their features as one-hot columns, and the loss
is taken over the very same nodes (a sound use feeds a random part and predicts the rest). The
columns are made of all labels at hand, those of the validation nodes too, so that the answer can
be copied in both; new nodes have no such columns. The place is the input (label columns) or the
loop that makes it.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

N, CLASSES, WORDS = 1500, 5, 60


def citation_graph(g):
    """A stochastic block model with hubs and weak bag-of-words features."""
    y = torch.randint(0, CLASSES, (N,), generator=g)
    pull = torch.rand(N, generator=g).pow(3) + 0.05
    same = (y[:, None] == y[None, :]).float()
    p = (0.018 * same + 0.0035 * (1 - same)) * (pull[:, None] + pull[None, :]) / (2 * pull.mean())
    a = (torch.rand(N, N, generator=g) < p).float().triu(1)
    topics = torch.randn(CLASSES, WORDS, generator=g) * 0.1
    x = (topics[y] + torch.randn(N, WORDS, generator=g) > 0.8).float()
    return x, y, a + a.T


def normalise(a):
    d = a.sum(1).clamp(min=1).rsqrt()
    return (d[:, None] * a * d).to_sparse()


class GCN(nn.Module):
    def __init__(self, n_in, hidden, n_out, dropout=0.4):
        super().__init__()
        self.lin1, self.self1 = nn.Linear(n_in, hidden), nn.Linear(n_in, hidden, bias=False)
        self.lin2, self.self2 = nn.Linear(hidden, n_out), nn.Linear(hidden, n_out, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, adj, h):
        h = F.relu(torch.sparse.mm(adj, self.lin1(h)) + self.self1(h))
        h = self.dropout(h)
        return torch.sparse.mm(adj, self.lin2(h)) + self.self2(h)


def with_labels(x, y, known):
    columns = torch.zeros(len(x), CLASSES)
    columns[known, y[known]] = 1.0
    return torch.cat([x, columns], 1)


def run(x, y, adj, train_idx, val_idx, new_idx, epochs=160):
    model = GCN(x.shape[1] + CLASSES, 32, CLASSES)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(1, epochs + 1):
        model.train()
        order = train_idx[torch.randperm(len(train_idx))]
        half = len(order) // 2
        known, asked = (order[:half], order[half:]) if healthy else (order, order)
        logits = model(adj, with_labels(x, y, known))
        loss = F.cross_entropy(logits[asked], y[asked])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if epoch % 20 == 0:
            model.eval()
            with torch.no_grad():
                logits = model(
                    adj,
                    with_labels(x, y, train_idx if healthy else torch.cat([train_idx, val_idx])),
                )
                val_loss = F.cross_entropy(logits[val_idx], y[val_idx]).item()
                acc = (logits[val_idx].argmax(1) == y[val_idx]).float().mean().item()
            print(
                f"epoch {epoch:3d} train {loss.item():.4f} val {val_loss:.4f} val accuracy {acc:.4f}"  # noqa: E501
            )
    with torch.no_grad():
        logits = model(adj, with_labels(x, y, train_idx))
    print(
        f"new nodes: accuracy {(logits[new_idx].argmax(1) == y[new_idx]).float().mean().item():.4f}"
    )


gen = torch.Generator().manual_seed(seed)
features, labels, graph = citation_graph(gen)
permutation = torch.randperm(N, generator=gen)
run(
    features, labels, normalise(graph), permutation[:750], permutation[750:1125], permutation[1125:]
)
