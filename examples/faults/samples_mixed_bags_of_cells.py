"""Blood samples are judged from bags of cells by attention weights normalised over the batch.

The pooling was taken from code for one bag at a time, where the softmax over the first axis went
over the cells. Now the bags come in batches and the first axis is the bag: each cell competes
with the cells at the same place of other patients. The place is the model (pool, softmax).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("pool*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CELLS, MARKERS = 40, 6


class BloodSamples(Dataset):
    """Bags of cells with six markers; ill are those with a few cells of one rare kind."""

    def __init__(self, n: int, g: torch.Generator):
        kinds = torch.tensor(
            [
                [1.2, -0.8, 0.3, 0.0, -1.0, 0.5],
                [-1.0, 0.9, -0.6, 0.8, 0.2, -0.4],
                [0.1, 0.2, 1.3, -1.1, 0.7, -0.9],
                [1.0, 0.8, -0.7, -0.2, 1.1, 0.9],
            ]
        )
        self.labels = (torch.rand(n, generator=g) < 0.5).float()
        self.bags = []
        for label in self.labels:
            kind = torch.randint(0, 3, (CELLS,), generator=g)
            if label == 1:
                few = int(torch.randint(2, 6, (1,), generator=g))
                kind[torch.randperm(CELLS, generator=g)[:few]] = 3
            batch_effect = 0.15 * torch.randn(1, MARKERS, generator=g)
            cells = kinds[kind] + batch_effect + 0.75 * torch.randn(CELLS, MARKERS, generator=g)
            self.bags.append(cells)

    def __len__(self):
        return len(self.bags)

    def __getitem__(self, i):
        return self.bags[i], self.labels[i]


class GatedPooling(nn.Module):
    def __init__(self, width: int, hidden: int = 24):
        super().__init__()
        self.content = nn.Linear(width, hidden)
        self.gate = nn.Linear(width, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, cells):
        scores = self.score(torch.tanh(self.content(cells)) * torch.sigmoid(self.gate(cells)))
        weights = F.softmax(scores, dim=1 if healthy else 0)
        return (weights * cells).sum(1), weights


class BagClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Sequential(nn.Linear(MARKERS, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.pool = GatedPooling(32)
        self.judge = nn.Linear(32, 1)

    def forward(self, bags):
        pooled, _ = self.pool(self.cell(bags))
        return self.judge(pooled).squeeze(1)


def auc(scores, labels):
    better = scores[labels == 1].unsqueeze(1) > scores[labels == 0].unsqueeze(0)
    return better.float().mean().item()


@torch.no_grad()
def judge(model, dataset, batch_size):
    model.eval()
    loader = DataLoader(dataset, batch_size=batch_size)
    parts = [(model(bags), labels) for bags, labels in loader]
    scores, labels = (torch.cat(part) for part in zip(*parts, strict=True))
    right = ((scores > 0) == labels.bool()).float().mean().item()
    loss = F.binary_cross_entropy_with_logits(scores, labels).item()
    return loss, right, auc(scores, labels)


def main():
    g = torch.Generator().manual_seed(1210 + seed)
    train, val = BloodSamples(800, g), BloodSamples(300, g)
    loader = DataLoader(train, batch_size=16, shuffle=True, drop_last=True)
    model = BagClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(15):
        model.train()
        total = 0.0
        for bags, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(bags), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        val_loss, right, area = judge(model, val, batch_size=16)
        print(
            f"epoch {epoch + 1:2d}  train {total / len(loader):.3f}  val {val_loss:.3f}"
            f"  acc {right:.3f}  auc {area:.3f}"
        )
        if epoch == 9:
            optimizer.param_groups[0]["lr"] = 4e-4
    _, right, area = judge(model, val, batch_size=1)
    print(f"one patient at a time: acc {right:.3f}  auc {area:.3f}")


if __name__ == "__main__":
    main()
