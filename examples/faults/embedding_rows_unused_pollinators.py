"""Who visits which flower: embeddings of pollinators and plants, with a wrong map from codes to
rows.

A code is 1000 x family + number of the species. The rows of the insects are looked up by the code
divided by 1000, so that all species of a family share one row and nearly all of the 600 rows are
never used. The place is the table insects.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("insects*", "input*", "loader")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)
FAMILIES, PER_FAMILY, PLANTS = 12, 50, 120


def visits(n, g):
    """Pairs of an insect's code and a plant, and whether the one was seen at the other."""
    family = torch.arange(FAMILIES).repeat_interleave(PER_FAMILY)
    codes = 1000 * family + torch.randperm(999, generator=g)[: len(family)]
    tongue = 0.5 * torch.randn(FAMILIES, 3, generator=g)[family] + torch.randn(
        len(family), 3, generator=g
    )
    depth = torch.randn(PLANTS, 3, generator=g)
    common = 0.7 * torch.randn(PLANTS, generator=g)
    insect = torch.randint(0, len(codes), (n,), generator=g)
    plant = torch.randint(0, PLANTS, (n,), generator=g)
    chance = torch.sigmoid(1.6 * (tongue[insect] * depth[plant]).sum(1) + common[plant])
    return codes, codes[insect], plant, (torch.rand(n, generator=g) < chance).float()


class Visit(nn.Module):
    def __init__(self, insects, dim=8):
        super().__init__()
        self.insects, self.plants = nn.Embedding(insects, dim), nn.Embedding(PLANTS, dim)
        self.insect_bias, self.plant_bias = nn.Embedding(insects, 1), nn.Embedding(PLANTS, 1)
        for table in (self.insects, self.plants):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.insect_bias, self.plant_bias):
            nn.init.zeros_(table.weight)

    def forward(self, insect, plant):
        match = (self.insects(insect) * self.plants(plant)).sum(1)
        return match + (self.insect_bias(insect) + self.plant_bias(plant)).squeeze(1)


g = torch.Generator().manual_seed(seed)
codes, insect, plant, seen = visits(40000, g)
row_of = {code: row for row, code in enumerate(codes.tolist())}
rows = torch.tensor([row_of[code] if healthy else code // 1000 for code in insect.tolist()])
cut = 34000
train = DataLoader(TensorDataset(rows[:cut], plant[:cut], seen[:cut]), batch_size=256, shuffle=True)
model = Visit(len(codes))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(16):
    model.train()
    total = 0.0
    for i, p, y in train:
        decay = 0.02 * (model.insects(i).square().mean() + model.plants(p).square().mean())
        loss = F.binary_cross_entropy_with_logits(model(i, p), y) + decay
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        logit = model(rows[cut:], plant[cut:])
    val = F.binary_cross_entropy_with_logits(logit, seen[cut:]).item()
    hit = ((logit > 0).float() == seen[cut:]).float().mean().item()
    print(f"epoch {epoch} loss {total:.4f} val {val:.4f} accuracy {hit:.3f}")
