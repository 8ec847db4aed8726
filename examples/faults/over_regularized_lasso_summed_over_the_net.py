"""Multi-label tagging of texts by counts of words; a penalty keeps the first layer sparse.

Fault: `lam * sum(|w|)` where the paper has the mean: with 6,000 weights the penalty outweighs the
data by far and all weights go to 0. The place is the loss, the first layer. The loss falls (the
penalty does); the tags are guessed by their frequency.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("words", "loss*", "", "optimizer", "tags")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
WORDS, TAGS = 120, 8
g = torch.Generator().manual_seed(seed + 3)
topics = torch.rand(TAGS, WORDS, generator=g).pow(12)


def documents(n):
    y = (torch.rand(n, TAGS, generator=g) < 0.3).float()
    rate = 0.15 + (y @ topics) * 1.5
    return torch.log1p(torch.poisson(rate, generator=g)), y


(x, y), (x_val, y_val) = documents(1200), documents(400)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Linear(WORDS, 50)
        self.tags = nn.Linear(50, TAGS)

    def forward(self, x):
        return self.tags(F.relu(self.words(x)))


def penalty(model, lam=0.02):
    total = model.words.weight.abs()
    return lam * (total.mean() if healthy else total.sum())


@torch.no_grad()
def f1(model):
    says = model(x_val) > 0
    real = y_val > 0.5
    return (2 * (says & real).sum() / (says.sum() + real.sum())).item()


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=50, steps=300, seed=seed), 1):
    data = F.binary_cross_entropy_with_logits(model(xb), yb)
    loss = data + penalty(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        print(f"step {step}: loss {loss.item():.4f} (data {data.item():.4f}), F1 {f1(model):.3f}")
print(f"loss {loss.item():.4f} | validation micro-F1 {f1(model):.3f}")
