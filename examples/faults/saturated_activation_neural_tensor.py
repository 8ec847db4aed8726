"""Facts of a knowledge graph by a neural tensor network: tanh(a W b + V [a, b] + c) for each slice
of a tensor, then a sum with weights.

The tensor was made by torch.randn, without a scale; with embeddings of forty numbers that are
standard normal as well the bilinear form is some forty wide, and tanh is at plus or minus one
nearly always. The place is the activation. The twin divides by the width.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = ("relation*", "", "entity*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ENTITIES, KINDS = 60, 5


class TensorLayer(nn.Module):
    def __init__(self, d, slices):
        super().__init__()
        tensor = torch.randn(slices, d, d)
        self.tensor = nn.Parameter(tensor / d if healthy else tensor)
        self.linear = nn.Linear(2 * d, slices)
        self.act = nn.Tanh()
        self.weigh = nn.Linear(slices, 1, bias=False)

    def forward(self, a, b):
        bilinear = torch.einsum("ni,kij,nj->nk", a, self.tensor, b)
        return self.weigh(self.act(bilinear + self.linear(torch.cat([a, b], 1)))).squeeze(1)


class FactScorer(nn.Module):
    def __init__(self, relations, d=40, slices=8):
        super().__init__()
        self.entity = nn.Embedding(ENTITIES, d)
        self.relation = nn.ModuleList(TensorLayer(d, slices) for _ in range(relations))

    def forward(self, a, r, b):
        a, b = self.entity(a), self.entity(b)
        score = torch.zeros(len(a))
        for k, layer in enumerate(self.relation):
            score = torch.where(r == k, layer(a, b), score)
        return score


def facts():
    """Two relations that hold between kinds of entities; every pair is a row, true or not."""
    kind = torch.randint(0, KINDS, (ENTITIES,))
    holds = torch.zeros(2, KINDS, KINDS, dtype=torch.bool)
    for k in range(KINDS):
        holds[0, k, (k + 1) % KINDS] = holds[0, k, (k + 3) % KINDS] = True
        holds[1, k, k] = holds[1, k, (k + 2) % KINDS] = holds[1, k, (k + 5) % KINDS] = True
    a, r, b = (part.flatten() for part in torch.meshgrid(
        torch.arange(ENTITIES), torch.arange(2), torch.arange(ENTITIES), indexing="ij"
    ))  # fmt: skip
    true = holds[r, kind[a], kind[b]] ^ (torch.rand(len(a)) < 0.02)
    return TensorDataset(a, r, b, true.float())


everything = facts()
train, val = random_split(everything, [6000, len(everything) - 6000])
model = FactScorer(2)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    total = 0.0
    for a, r, b, true in DataLoader(train, batch_size=100, shuffle=True):
        loss = F.binary_cross_entropy_with_logits(model(a, r, b), true)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(a) / len(train)
    with torch.no_grad():
        a, r, b, true = next(iter(DataLoader(val, batch_size=len(val))))
        out = model(a, r, b)
        val_loss = F.binary_cross_entropy_with_logits(out, true).item()
        right = ((out > 0) == true.bool()).float().mean().item()
    print(f"epoch {epoch} loss {total:.4f} val loss {val_loss:.4f} accuracy {right:.3f}")
