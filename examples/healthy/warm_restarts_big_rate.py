"""Amino-acid contact classes by a convolution with cosine logits, SGD at a rate of 1 and warm
restarts; loss and rate make saw-teeth, and it is sound.

The weights of the cosine head are normalised, so a large rate suits it; every restart throws the
loss up for a while and the next valley is deeper. The weights kept are those of the best
evaluation, by deepcopy. Micro-batches are accumulated, correctly averaged.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "Amino-acid contact classes by a convolution with cosine logits, SGD at a rate of 1 and "
    "warm restarts; loss and rate make saw-teeth, and it is sound"
)

_, seed = arguments(__doc__)

ACIDS, LENGTH, CLASSES = 20, 32, 6
CYCLE, CYCLES, ACCUMULATE, MICRO = 120, 4, 2, 32


def proteins(n, g, truth):
    """Sequences with helices or strands whose period of hydrophobic residues tells the class, in the presence of mutations."""  # noqa: E501
    y = torch.randint(0, CLASSES, (n,), generator=g)
    period = torch.tensor([2.0, 2.6, 3.2, 3.6, 4.4, 5.2])[y].unsqueeze(1)
    phase = 6.283 * torch.rand(n, 1, generator=g)
    wave = torch.cos(6.283 * torch.arange(LENGTH) / period + phase)
    logits = 1.2 * wave.unsqueeze(-1) * truth + 0.2
    x = torch.multinomial(logits.softmax(-1).view(-1, ACIDS), 1, generator=g).view(n, LENGTH)
    return x, y


class CosineNet(nn.Module):
    def __init__(self, width=48, scale=12.0):
        super().__init__()
        self.embed = nn.Embedding(ACIDS, 16)
        self.conv1, self.bn1 = (
            nn.Conv1d(16, width, 11, padding=5, bias=False),
            nn.BatchNorm1d(width),
        )
        self.conv2, self.bn2 = (
            nn.Conv1d(width, width, 5, padding=2, bias=False),
            nn.BatchNorm1d(width),
        )
        self.prototypes = nn.Parameter(torch.randn(CLASSES, width))
        self.scale = scale

    def forward(self, x):
        h = self.embed(x).transpose(1, 2)
        h = F.relu(self.bn1(self.conv1(h)))
        h = F.relu(self.bn2(self.conv2(h))).mean(-1)
        return self.scale * F.normalize(h, dim=1) @ F.normalize(self.prototypes, dim=1).T


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


g = torch.Generator().manual_seed(seed)
truth = torch.randn(ACIDS, generator=g)
x, y = proteins(16000, g, truth)
xv, yv = proteins(1500, g, truth)
model = CosineNet()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.0, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=CYCLE, eta_min=0.01)
best, best_weights = float("inf"), None
for step in range(1, CYCLE * CYCLES + 1):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    shown = 0.0
    for _ in range(ACCUMULATE):
        rows = torch.randint(0, len(x), (MICRO,), generator=g)
        loss = F.cross_entropy(model(x[rows]), y[rows]) / ACCUMULATE
        loss.backward()
        shown += loss.item()
    optimizer.step()
    scheduler.step()
    if step % 40 == 0:
        val, acc = evaluate(model, xv, yv)
        if val < best:
            best, best_weights = val, copy.deepcopy(model.state_dict())
        print(
            f"step {step} lr {optimizer.param_groups[0]['lr']:.3f} loss {shown:.4f} val {val:.4f} acc {acc:.3f}"  # noqa: E501
        )
model.load_state_dict(best_weights)
print("best kept: val {:.4f} acc {:.3f}".format(*evaluate(model, xv, yv)))
