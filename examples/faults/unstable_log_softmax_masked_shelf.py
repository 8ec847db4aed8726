"""Which of the goods on a shelf a customer takes, by the log of a masked softmax.

Goods not on the shelf get the score -1e9, so their softmax is exactly 0 and its log -inf: the loss
looks right, its gradient is NaN. The healthy twin uses log_softmax. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*", "loop", "")
SILENT = False
EXACT = True
EARLY = True

GOODS, SHELF, FEATURES = 30, 8, 6


def purchases(n, wants):
    customer = torch.randn(n, FEATURES)
    on_shelf = torch.zeros(n, GOODS, dtype=torch.bool)
    on_shelf.scatter_(1, torch.rand(n, GOODS).topk(SHELF).indices, True)
    liking = 1.5 * torch.tanh(customer) @ wants + 0.3 * torch.randn(n, GOODS)
    return customer, on_shelf, liking.masked_fill(~on_shelf, -100).argmax(1)


class ChoiceModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.customer = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 12))
        self.goods = nn.Embedding(GOODS, 12)

    def forward(self, customer, on_shelf):
        scores = self.customer(customer) @ self.goods.weight.T / 12**0.5
        return scores.masked_fill(~on_shelf, -1e9)


def choice_loss(scores, taken, stable):
    log_p = F.log_softmax(scores, dim=-1) if stable else torch.log(F.softmax(scores, dim=-1))
    return F.nll_loss(log_p, taken)


healthy, seed = arguments(__doc__)
wants = torch.randn(FEATURES, GOODS)
train, val = purchases(4000, wants), purchases(800, wants)
model = ChoiceModel()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for customer, on_shelf, taken in batches(*train, size=100, steps=300, seed=seed):
    loss = choice_loss(model(customer, on_shelf), taken, stable=healthy)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    scores = model(*val[:2])
    val_loss = choice_loss(scores, val[2], stable=healthy)
    accuracy = (scores.argmax(1) == val[2]).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
