"""Molecules in an assay: one body with two heads says whether a compound is toxic and how well it
dissolves. Few compounds have both labels; what was not measured is NaN and is masked in the loss.

What looks odd: NaN in the targets, batches in which a head sees only a handful of labels, a loss
that jumps from batch to batch with their number, and per row a head that gets no gradient.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "NaN in the targets, masked; a loss that jumps with the number of labels in a batch"

BITS = 96


class Assay(Dataset):
    """Fingerprints; toxic is known for 35 of 100, solubility for 60."""

    def __init__(self, n, g, all_known=False):
        chemistry = torch.Generator().manual_seed(21)
        groups = torch.randn(6, BITS, generator=chemistry)
        part = torch.randn(2, 6, generator=chemistry)
        self.x = (torch.rand(n, BITS, generator=g) < 0.25).float()
        hidden = torch.tanh((self.x - 0.25) @ groups.T / 3)
        toxic = hidden @ part[0] + 0.8 * hidden[:, 0] * hidden[:, 1]
        toxic = (toxic + 0.3 * torch.randn(n, generator=g) > 0).float()
        soluble = hidden @ part[1] + 0.2 * torch.randn(n, generator=g)
        if not all_known:
            toxic[torch.rand(n, generator=g) > 0.35] = torch.nan
            soluble[torch.rand(n, generator=g) > 0.6] = torch.nan
        self.toxic, self.soluble = toxic, soluble

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"bits": self.x[i], "toxic": self.toxic[i], "soluble": self.soluble[i]}


class TwoHeads(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(BITS, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU()
        )
        self.heads = nn.ModuleDict({"toxic": nn.Linear(width, 1), "soluble": nn.Linear(width, 1)})

    def forward(self, bits):
        h = self.body(bits)
        return {name: head(h).squeeze(1) for name, head in self.heads.items()}


def masked(each, target):
    """The mean over what is known; `each` was computed with zeros in the place of NaN."""
    known = target.isfinite().float()
    return (each * known).sum() / known.sum().clamp_min(1)


def losses(out, batch):
    toxic, soluble = (batch[k].nan_to_num(0.0) for k in ("toxic", "soluble"))
    bce = F.binary_cross_entropy_with_logits(out["toxic"], toxic, reduction="none")
    huber = F.smooth_l1_loss(out["soluble"], soluble, reduction="none")
    return masked(bce, batch["toxic"]), masked(huber, batch["soluble"])


def train_epoch(model, loader, optimizer):
    model.train()
    for batch in loader:
        toxic, soluble = losses(model(batch["bits"]), batch)
        loss = toxic + 2.0 * soluble
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model, test):
    model.eval()
    out = model(test.x)
    right = ((out["toxic"] > 0) == test.toxic.bool()).float().mean().item()
    r2 = 1 - F.mse_loss(out["soluble"], test.soluble) / test.soluble.var()
    return right, r2.item()


if __name__ == "__main__":
    _, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    train, test = Assay(3000, g), Assay(600, g, all_known=True)
    loader = DataLoader(train, batch_size=48, shuffle=True, drop_last=True)
    model = TwoHeads()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
    for epoch in range(9):
        loss = train_epoch(model, loader, optimizer)
        right, r2 = evaluate(model, test)
        print(f"epoch {epoch} loss {loss:.4f} toxic accuracy {right:.3f} solubility R2 {r2:.3f}")
