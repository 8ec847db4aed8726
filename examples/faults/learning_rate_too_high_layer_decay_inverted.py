"""Peptides that bind, or do not: a small transformer encoder whose optimizer has a rate for each
layer, less for the lower ones, as is done in fine-tuning.

The exponent has the wrong sign: the rate is divided by 0.3 for each layer that one goes down, and
the embedding is trained with a hundred times the rate of the head. The place is the optimizer. The
twin multiplies.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "embed*", "place", "layers*", "")
SILENT = False
EXACT = False
EARLY = True

LETTERS, LENGTH, CORE = 20, 12, 7


class Peptides(nn.Module):
    def __init__(self, d=32, depth=3):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, d)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, d))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                d, 4, 2 * d, dropout=0.0, batch_first=True, activation="gelu", norm_first=True
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(LENGTH * d, 1)

    def forward(self, x):
        h = self.embed(x) + self.place
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h).flatten(1)).squeeze(1)


def groups_by_depth(model, rate, decay):
    """Layer-wise decay: the head has the full rate, every layer below less than the one above."""
    stages = [[model.embed.weight, model.place]]
    stages += [list(layer.parameters()) for layer in model.layers]
    stages += [[*model.norm.parameters(), *model.head.parameters()]]
    top = len(stages) - 1
    return [
        {"params": stage, "lr": rate * decay ** (top - depth)} for depth, stage in enumerate(stages)
    ]


def peptides(n, g):
    x = torch.randint(0, LETTERS, (n, LENGTH), generator=g)
    pocket = torch.Generator().manual_seed(77)
    score = torch.randn(CORE, LETTERS, generator=pocket)
    cores = torch.stack(
        [sum(score[k][x[:, start + k]] for k in range(CORE)) for start in (2,)],
        1,
    )
    bond = cores[:, 0] + 0.4 * torch.randn(n, generator=g)
    return x, (bond > bond.median()).float()


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    x, y = peptides(2400, g)
    x_val, y_val = peptides(600, g)
    model = Peptides()
    groups = groups_by_depth(model, rate=3e-3, decay=0.3 if healthy else 1 / 0.3)
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    loader = DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True)
    for epoch in range(8):
        mean = 0.0
        for peptide, binds in loader:
            loss = F.binary_cross_entropy_with_logits(model(peptide), binds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean += loss.item() / len(loader)
        with torch.no_grad():
            accuracy = ((model(x_val) > 0) == y_val.bool()).float().mean().item()
        print(f"epoch {epoch} loss {mean:.4f} val accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
