"""Metric learning with triplets on batches of 8 identities by 6 pictures, drawn in blocks: the
loss rests near the margin, soundly.

It looks odd since rows of a batch are sorted by class, most classes are absent from every batch,
the loss is a mean over the hard triplets only (so that it falls slowly though the retrieval gets
much better), the loss of the validation is not computed at all, but the recall on identities that
the training has never seen, and labels serve only to choose pairs.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

ODD = "batches are sorted by class, and the loss rests near its margin"
_, seed = arguments(__doc__)
P, K, IDS, UNSEEN, PER_ID, SIDE = 8, 6, 90, 30, 16, 16


def marks(ids, g):
    """Every identity is a pattern of soft spots; its pictures vary in place, light and noise."""
    yy, xx = torch.meshgrid(torch.arange(SIDE).float(), torch.arange(SIDE).float(), indexing="ij")
    pics, labels = [], []
    for i in range(ids):
        spots = torch.rand(6, 2, generator=g) * (SIDE - 4) + 2
        power = torch.randn(6, generator=g).sign() * (0.6 + 0.8 * torch.rand(6, generator=g))
        for _ in range(PER_ID):
            move = (
                spots + 1.0 * torch.randn(1, 2, generator=g) + 0.4 * torch.randn(6, 2, generator=g)
            )
            d = (yy - move[:, 0, None, None]) ** 2 + (xx - move[:, 1, None, None]) ** 2
            pic = (power[:, None, None] * torch.exp(-d / 4)).sum(0) * (
                0.7 + 0.6 * torch.rand((), generator=g)
            )
            pics.append(pic + 0.35 * torch.randn(SIDE, SIDE, generator=g))
            labels.append(i)
    return torch.stack(pics)[:, None], torch.tensor(labels)


class PKSampler(Sampler):
    def __init__(self, labels, steps):
        self.rows = {int(i): (labels == i).nonzero().squeeze(1) for i in labels.unique()}
        self.steps = steps

    def __len__(self):
        return self.steps

    def __iter__(self):
        for _ in range(self.steps):
            chosen = torch.randperm(len(self.rows))[:P].sort().values.tolist()
            yield torch.cat([self.rows[c][torch.randperm(PER_ID)[:K]] for c in chosen]).tolist()


class Marks(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Embedder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Linear(32 * 16, dim)

    def forward(self, x):
        return F.normalize(self.fc(self.conv(x).flatten(1)), dim=1)


def hard_triplets(z, y, margin=0.3):
    d = (2 - 2 * z @ z.T).clamp_min(1e-6).sqrt()
    same = y[:, None] == y[None, :]
    furthest = d.masked_fill(~same, 0).amax(1)
    nearest = d.masked_fill(same, 9).amin(1)
    hurt = F.relu(furthest - nearest + margin)
    active = hurt > 0
    return hurt[active].mean() if active.any() else hurt.sum(), active.float().mean()


@torch.no_grad()
def recall_at_1(net, x, y):
    net.eval()
    z = net(x)
    net.train()
    s = z @ z.T
    s.fill_diagonal_(-2)
    return (y[s.argmax(1)] == y).float().mean().item()


g = torch.Generator().manual_seed(seed + 70)
x, y = marks(IDS, g)
xv, yv = marks(UNSEEN, g)
mean, std = x.mean(), x.std()
x, xv = (x - mean) / std, (xv - mean) / std
net = Embedder()
EPOCHS, STEPS = 8, 50
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS * STEPS, eta_min=1e-5)
loader = DataLoader(Marks(x, y), batch_sampler=PKSampler(y, STEPS))
print(f"untrained: recall@1 {recall_at_1(net, xv, yv):.3f}")
for epoch in range(EPOCHS):
    loss_sum = active_sum = 0.0
    for xb, yb in loader:
        loss, active = hard_triplets(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        loss_sum, active_sum = loss_sum + loss.item(), active_sum + active.item()
    print(
        f"epoch {epoch} loss {loss_sum / STEPS:.3f} active {active_sum / STEPS:.2f} unseen recall@1 {recall_at_1(net, xv, yv):.3f}"  # noqa: E501
    )
