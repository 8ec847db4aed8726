"""Click-through by a wide and deep model with two optimizers: only the last one's gradients are
cleared.

The wide part has its own optimizer. In the step function a loop over the two was unrolled into one
line, and the clearing stayed behind with the deep part's alone; the wide part now steps along the
sum of all gradients since the start. The place is the loop. The twin clears both.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "wide.weight", "bias")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
FIELDS, SIZE, ROWS = 6, 40, 24000


def clicks():
    r = np.random.default_rng(130 + seed)
    codes = r.integers(0, SIZE, (ROWS, FIELDS))
    each = r.normal(0, 0.7, (FIELDS, SIZE))
    hidden = r.normal(0, 0.9, (FIELDS, SIZE, 3))
    logit = sum(each[f, codes[:, f]] for f in range(FIELDS)) - 0.6
    for a, b in ((0, 1), (2, 3), (1, 4)):
        logit = logit + (hidden[a, codes[:, a]] * hidden[b, codes[:, b]]).sum(1) * 0.8
    click = (r.uniform(size=ROWS) < 1 / (1 + np.exp(-logit))).astype("float32")
    return torch.tensor(codes + SIZE * np.arange(FIELDS)), torch.tensor(click)


class WideDeep(nn.Module):
    def __init__(self, dim: int = 8):
        super().__init__()
        self.wide = nn.EmbeddingBag(FIELDS * SIZE, 1, mode="sum")
        self.bias = nn.Parameter(torch.zeros(1))
        self.embed = nn.Embedding(FIELDS * SIZE, dim)
        self.deep = nn.Sequential(
            nn.Linear(FIELDS * dim, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1)
        )
        nn.init.zeros_(self.wide.weight)
        nn.init.normal_(self.embed.weight, std=0.1)

    def forward(self, codes):
        return (self.wide(codes) + self.bias + self.deep(self.embed(codes).flatten(1))).squeeze(1)


def auc(score, label):
    rank = score.argsort().argsort().double() + 1
    pos = label.sum().double()
    return ((rank[label > 0].sum() - pos * (pos + 1) / 2) / (pos * (len(label) - pos))).item()


codes, click = clicks()
cut = 18000
model = WideDeep()
wide_optimizer = torch.optim.SGD([model.wide.weight, model.bias], lr=0.5)
deep_optimizer = torch.optim.Adam([*model.embed.parameters(), *model.deep.parameters()], lr=2e-3)
optimizers = (wide_optimizer, deep_optimizer)


def step(x, y):
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
    for optimizer in optimizers if healthy else optimizers[1:]:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    return loss.item()


for epoch in range(8):
    model.train()
    losses = [step(codes[rows], click[rows]) for rows in torch.randperm(cut).split(256)]
    model.eval()
    with torch.no_grad():
        logit = model(codes[cut:])
        val = nn.functional.binary_cross_entropy_with_logits(logit, click[cut:]).item()
    print(
        f"epoch {epoch + 1}: train {np.mean(losses):.4f}, validation {val:.4f}, "
        f"AUC {auc(logit, click[cut:]):.4f}"
    )
print(f"validation AUC {auc(logit, click[cut:]):.4f}, log loss {val:.4f}")
