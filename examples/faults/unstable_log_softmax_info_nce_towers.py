"""Two towers (query and product) by InfoNCE at a temperature of 0.01, its softmax written out.

exp(s / T) / sum exp(s / T), then the log: right on paper and for T = 0.1. At 0.01 a similarity of
0.9 is exp(90), more than float32 holds; inf / inf is NaN, and so are all weights after that step.
The place is the loss. The twin calls cross_entropy on s / T.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
PAIRS, HELD, T = 2400, 300, 0.01
meaning = torch.randn(PAIRS + HELD, 6, generator=g)
query = torch.tanh(meaning @ torch.randn(6, 24, generator=g)) + 0.4 * torch.randn(
    PAIRS + HELD, 24, generator=g
)
product = torch.relu(meaning @ torch.randn(6, 32, generator=g)) + 0.4 * torch.randn(
    PAIRS + HELD, 32, generator=g
)
product = (product - product.mean(0)) / product.std(0)


class Tower(nn.Module):
    def __init__(self, inputs, width=64, outputs=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def info_nce(a, b):
    similarity = a @ b.T
    if healthy:
        return F.cross_entropy(similarity / T, torch.arange(len(a)))
    weight = torch.exp(similarity / T)
    probability = weight / weight.sum(1, keepdim=True)
    return -torch.log(probability.diagonal()).mean()


towers = nn.ModuleDict({"query": Tower(24), "product": Tower(32)})
optimizer = torch.optim.AdamW(towers.parameters(), lr=5e-4, weight_decay=0.05)


@torch.no_grad()
def recall_at_10():
    towers.eval()
    ranked = (
        (towers["query"](query[PAIRS:]) @ towers["product"](product[PAIRS:]).T).topk(10).indices
    )
    return (ranked == torch.arange(HELD)[:, None]).any(1).float().mean().item()


step = 0
for epoch in range(12):
    towers.train()
    for rows in torch.randperm(PAIRS, generator=g).split(64):
        loss = info_nce(towers["query"](query[rows]), towers["product"](product[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(f"epoch {epoch} step {step} loss {loss.item():.4f} recall@10 {recall_at_10():.3f}")
