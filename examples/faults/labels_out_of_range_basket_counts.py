"""Next-basket recommender of a grocery shop; the multi-hot target holds quantities instead of 0
and 1.

The targets of the binary cross entropy are built by scatter_add_, so that somebody who buys three
bottles of milk has a target of 3 there. Binary cross entropy has no minimum for targets above
one: the logits of products that are bought in numbers run away, whoever the customer is, and the
loss becomes negative. The place is the loss and its target (loader).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "labels_out_of_range"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

PRODUCTS, CUSTOMERS, LATENT = 120, 1500, 8
MAX_LINES = 14
g = torch.Generator().manual_seed(seed + 900)

# ------------------------------------------------------------------ simulated shop
taste = torch.randn(CUSTOMERS, LATENT, generator=g)
product = torch.randn(PRODUCTS, LATENT, generator=g)
popularity = torch.randn(PRODUCTS, generator=g) - 1.2
usual_amount = 1 + torch.poisson(
    torch.where(torch.rand(PRODUCTS, generator=g) < 0.35, 4.0, 0.05), generator=g
)


def baskets(weeks):
    """Lists of bought product numbers per customer; a product appears once for each piece."""
    logits = 0.8 * taste @ product.T / LATENT**0.5 * 2.2 + popularity - 1.6
    result = []
    for _ in range(weeks):
        bought = torch.rand(CUSTOMERS, PRODUCTS, generator=g) < torch.sigmoid(logits)
        amount = torch.where(bought, usual_amount.expand_as(logits), torch.zeros(()))
        amount = torch.where(
            amount > 1,
            (amount + torch.randint(-1, 2, amount.shape, generator=g)).clamp(min=1),
            amount,
        )
        result.append(amount.long())
    return torch.stack(result, 1)


amounts = baskets(6)  # (customers, weeks, products)
past, last = amounts[:, :5], amounts[:, 5]
history = (past > 0).float().mean(1)
lines = [row.nonzero().flatten().repeat_interleave(row[row > 0]) for row in last]


def target_of(indices):
    y = torch.zeros(len(indices), PRODUCTS)
    for row, i in enumerate(indices.tolist()):
        items = lines[i]
        y[row].scatter_add_(0, items, torch.ones(len(items)))
    if healthy:
        y = y.clamp(max=1)
    return y


class NextBasket(nn.Module):
    """Denoising auto-encoder style: history in, probability of each product next week out."""

    def __init__(self, n, hidden=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n, hidden), nn.LayerNorm(hidden), nn.Tanh())
        self.decoder = nn.Linear(hidden, n)
        self.skip = nn.Parameter(torch.ones(n))

    def forward(self, h):
        return self.decoder(self.encoder(F.dropout(h, 0.2, self.training))) + self.skip * h


order = torch.randperm(CUSTOMERS, generator=g)
train, val = order[:1200], order[1200:]
model = NextBasket(PRODUCTS)
with torch.no_grad():
    rate = (past[train] > 0).float().mean((0, 1)).clamp(0.005, 0.95)
    model.decoder.bias.copy_(torch.logit(rate))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)


def evaluate():
    model.eval()
    with torch.no_grad():
        score = model(history[val])
    model.train()
    truth = (last[val] > 0).float()
    top = score.topk(10, 1).indices
    recall = truth.gather(1, top).sum(1) / truth.sum(1).clamp(min=1)
    pred = (score.sigmoid() > 0.3).float()
    f1 = 2 * (pred * truth).sum() / (pred.sum() + truth.sum())
    return recall.mean().item(), f1.item()


for epoch in range(25):
    total, count = 0.0, 0
    for idx in train[torch.randperm(len(train))].split(48):
        loss = F.binary_cross_entropy_with_logits(model(history[idx]), target_of(idx))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, count = total + loss.item(), count + 1
    if epoch % 4 == 0:
        recall, f1 = evaluate()
        print(f"epoch {epoch:2d} loss {total / count:.4f} recall@10 {recall:.3f} f1@0.3 {f1:.3f}")
