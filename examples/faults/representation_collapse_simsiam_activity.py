"""Self-supervised vectors of windows from a motion sensor, two views each, collapse to one point.

The loss was moved into a helper that takes (p1, z2) and (p2, z1). In the old code `z` was detached
on the way; the helper does not. Without the stopped gradient the easiest answer is the same vector
for every window: the loss reaches its minimum and the classifier on the vectors has nothing to
work with. The place is the loss. The twin detaches `z`.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss*", "encoder", "projector", "predictor")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def windows(n, length=48):
    """Three axes of six activities: a base tempo, an axis of strength, a harmonic."""
    y = torch.randint(0, 6, (n,))
    tempo = torch.tensor([0.15, 0.25, 0.4, 0.6, 0.25, 0.6])[y, None] * (
        0.93 + 0.14 * torch.rand(n, 1)
    )
    phase = 6.283 * torch.rand(n, 1)
    a = torch.arange(length) * tempo + phase
    strength = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 0.0]])[y]
    x = torch.stack([a.sin(), (2 * a).sin(), a.cos()], 1) * strength[..., None]
    return x + 0.7 * torch.randn(n, 3, length), y


def view(x):
    """A random stretch of 36 samples, louder or softer, with noise."""
    start = int(torch.randint(0, 13, ()))
    x = x[:, :, start : start + 36] * (0.8 + 0.4 * torch.rand(len(x), 1, 1))
    return x + 0.1 * torch.randn_like(x)


class SimSiam(nn.Module):
    def __init__(self, width=32, dim=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(3, width, 7, stride=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(width, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, dim)
        )
        self.predictor = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))

    def forward(self, x):
        z = self.projector(self.encoder(x))
        return self.predictor(z), z


def similarity_loss(p, z):
    return -F.cosine_similarity(p, z.detach() if healthy else z, dim=-1).mean()


@torch.no_grad()
def nearest_neighbour(model, bank, query):
    """Accuracy of the nearest stored window by cosine of `z`, and the spread of unit vectors."""
    model.eval()
    known, asked = (F.normalize(model(x[:, :, 6:42])[1], dim=1) for x, _ in (bank, query))
    answer = bank[1][(asked @ known.T).argmax(1)]
    return (answer == query[1]).float().mean().item(), asked.std(0).mean().item()


bank, query = windows(2000), windows(400)
loader = DataLoader(TensorDataset(bank[0]), batch_size=100, shuffle=True, drop_last=True)
model = SimSiam()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=25)
for epoch in range(25):
    model.train()
    total = 0.0
    for (x,) in loader:
        (p1, z1), (p2, z2) = model(view(x)), model(view(x))
        loss = 0.5 * similarity_loss(p1, z2) + 0.5 * similarity_loss(p2, z1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    scheduler.step()
    accuracy, spread = nearest_neighbour(model, bank, query)
    print(f"epoch {epoch:2d} loss {total:.4f} nearest neighbour {accuracy:.3f} spread {spread:.4f}")
