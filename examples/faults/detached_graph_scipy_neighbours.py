"""A GCN multiplies with the sparse matrix of SciPy: h goes through .detach().numpy() and back.

All before that product gets no gradient, so that the first layer keeps its random weights and
squeezes 120 words into 6 numbers by chance. The place is that layer. The loss falls all the same
(silent), by the layer above. Exact: the parameters require a gradient, ran, and have none.
"""

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("embed*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# papers that cite within their field, with words of it
rng = np.random.default_rng(seed)
N, FIELDS, WORDS = 900, 5, 120
field = rng.integers(0, FIELDS, N)
use = np.random.default_rng(11).dirichlet(np.full(WORDS, 0.25), FIELDS)
use = 0.5 * use + 0.5 / WORDS
words = np.stack([rng.multinomial(9, use[f]) for f in field]).astype(np.float32)
chance = np.where(field[:, None] == field[None], 0.02, 0.002)
links = np.triu(rng.random((N, N)) < chance, 1)
adjacency = sp.csr_matrix(links | links.T, dtype=np.float32) + sp.eye(N, dtype=np.float32)
scale = sp.diags(1 / np.sqrt(np.asarray(adjacency.sum(1)).ravel()))
adjacency = (scale @ adjacency @ scale).tocsr().astype(np.float32)
as_tensor = torch.from_numpy(adjacency.toarray())

features = torch.from_numpy((words - words.mean(0)) / (words.std(0) + 1e-6))
target = torch.from_numpy(field)
order = torch.from_numpy(rng.permutation(N))
train, test = order[:400], order[400:]


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(WORDS, 6)
        self.hidden = nn.Linear(6, 32)
        self.out = nn.Linear(32, FIELDS)

    def spread(self, h):
        if healthy:
            return as_tensor @ h
        return torch.from_numpy(adjacency.dot(h.detach().numpy()))

    def forward(self, x):
        h = self.spread(self.embed(x))
        return self.out(F.relu(self.hidden(h)))


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(1, 91):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(features)[train], target[train])
    loss.backward()
    optimizer.step()
    if epoch % 30 == 0:
        model.eval()
        with torch.no_grad():
            right = (model(features).argmax(1) == target).float()
        print(
            f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {right[train].mean():.3f}, "
            f"Test: {right[test].mean():.3f}"
        )
