"""Ranking of offers by pairs of clicks; the logger of gradient norms clears the gradients.

`gradient_norm(model)` was written for a notebook, in which it followed a backward pass made just
for it, and so it ends with `zero_grad()`. Between backward() and step() it leaves the optimizer
nothing to do: the norms in the log look fine, no weight moves. The place is the loop. The twin's
logger only reads.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
COLUMNS = 8


def relevance(x):
    """Cheap, close by, well rated, and not both far and dear."""
    return -1.1 * x[..., 0] + 0.8 * x[..., 2] - 0.7 * x[..., 1].abs() + 0.6 * x[..., 3] * x[..., 4]


class ClickPairs(Dataset):
    """Pairs (clicked offer, offer shown above it and passed over)."""

    def __init__(self, n, g):
        pair = torch.randn(n, 2, COLUMNS, generator=g)
        noise = -torch.log(-torch.log(torch.rand(n, 2, generator=g)))
        first = (relevance(pair) + 0.5 * noise).argmax(1)
        rows = torch.arange(n)
        self.clicked, self.passed = pair[rows, first], pair[rows, 1 - first]

    def __len__(self):
        return len(self.clicked)

    def __getitem__(self, i):
        return self.clicked[i], self.passed[i]


class Ranker(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.score = nn.Sequential(
            nn.Linear(COLUMNS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, offers):
        return self.score(offers).squeeze(-1)


def gradient_norm(model):
    norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    total = torch.stack(norms).norm().item()
    if not healthy:
        model.zero_grad()
    return total


def train_step(model, optimizer, clicked, passed):
    optimizer.zero_grad()
    margin = model(clicked) - model(passed)
    loss = nn.functional.softplus(-margin).mean()  # RankNet
    loss.backward()
    norm = gradient_norm(model)
    optimizer.step()
    return loss.item(), norm


@torch.no_grad()
def ranking_quality(model, lists):
    """Share of pairs within each list of ten offers that are in the right order."""
    model.eval()
    score, truth = model(lists), relevance(lists)
    right = (score[:, :, None] > score[:, None, :]) == (truth[:, :, None] > truth[:, None, :])
    off_diagonal = ~torch.eye(lists.shape[1], dtype=torch.bool)
    return right[:, off_diagonal].float().mean().item()


g = torch.Generator().manual_seed(seed)
loader = DataLoader(ClickPairs(2560, g), batch_size=64, shuffle=True)
val_lists = torch.randn(200, 10, COLUMNS, generator=g)
model = Ranker()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    log = [train_step(model, optimizer, *pair) for pair in loader]
    loss, norm = (sum(column) / len(log) for column in zip(*log, strict=False))
    quality = ranking_quality(model, val_lists)
    print(f"epoch {epoch}: loss {loss:.4f} gradient norm {norm:.3f} pairs in order {quality:.3f}")
