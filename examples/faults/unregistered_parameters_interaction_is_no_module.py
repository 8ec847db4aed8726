"""Factorisation machine with a deep part; the class of the pairwise interactions is a plain Python
class (`class PairwiseInteraction:` - the `(nn.Module)` was lost when it moved to its own file).

Its factors take part in the forward pass and get gradients, but model.parameters() does not know
them. The rest learns (silent). The place is the interaction. Exact.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("interaction*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
FIELDS = [30, 20, 12, 8]  # advertiser, site, hour band, device
N, K = 9000, 6

g = torch.Generator().manual_seed(100 + seed)
ids = torch.stack([torch.randint(0, n, (N,), generator=g) for n in FIELDS], 1)
true_w = [0.4 * torch.randn(n, generator=g) for n in FIELDS]
true_v = [0.7 * torch.randn(n, 3, generator=g) for n in FIELDS]
logit = sum(w[ids[:, f]] for f, w in enumerate(true_w)) - 0.5
for a in range(4):
    for b in range(a + 1, 4):
        logit = logit + (true_v[a][ids[:, a]] * true_v[b][ids[:, b]]).sum(1)
click = torch.bernoulli(torch.sigmoid(logit), generator=g)
offsets = torch.tensor([0, *FIELDS[:-1]]).cumsum(0)
ids = ids + offsets

Base = nn.Module if healthy else object


class PairwiseInteraction(Base):
    def __init__(self, n_features, k):
        super().__init__()
        self.factors = nn.Parameter(0.1 * torch.randn(n_features, k))

    def forward(self, ids):
        v = self.factors[ids]
        return 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)

    if not healthy:
        __call__ = forward


class FactorizationMachine(nn.Module):
    def __init__(self, n_features, k):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
        self.linear = nn.Embedding(n_features, 1)
        nn.init.zeros_(self.linear.weight)
        self.interaction = PairwiseInteraction(n_features, k)

    def forward(self, ids):
        return self.bias + self.linear(ids).sum((1, 2)) + self.interaction(ids)


def evaluate(model, loader):
    model.eval()
    loss, right, n = 0.0, 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            out = model(xb)
            loss += nn.functional.binary_cross_entropy_with_logits(out, yb, reduction="sum").item()
            right += ((out > 0).float() == yb).sum().item()
            n += len(yb)
    return loss / n, right / n


train_loader = DataLoader(TensorDataset(ids[:7000], click[:7000]), batch_size=128, shuffle=True)
val_loader = DataLoader(TensorDataset(ids[7000:], click[7000:]), batch_size=500)
model = FactorizationMachine(sum(FIELDS), K)
print("trainable parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(7):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        loss = loss_fn(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    val_loss, val_acc = evaluate(model, val_loader)
    print(
        f"[{epoch}] logloss {total / len(train_loader):.4f}  "
        f"val logloss {val_loss:.4f}  val acc {val_acc:.4f}"
    )
