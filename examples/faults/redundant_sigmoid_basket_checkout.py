"""Will this web shop basket be paid for? The probabilities are squashed a second time in the loss.

The model's `forward` ends in a sigmoid, and the loss is `BCEWithLogitsLoss`, which applies one of
its own. The loss thus sees only values between 0.5 and 0.73: the buyers that stay away can never
be predicted with certainty, gradients are small, and the reported loss has a floor. It is the
usual left- over of a change from `BCELoss`. The place is the model's output. The twin returns the
logit and applies the sigmoid only where probabilities are wanted.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import log_loss, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("output*", "loss*", "out", "model", "squash")
SILENT = False
EXACT = True
EARLY = True

N_ITEMS, MAX_ITEMS = 200, 8


class Baskets(Dataset):
    def __init__(self, n, rng, appeal):
        self.items = np.zeros((n, MAX_ITEMS), dtype=np.int64)
        self.context = rng.normal(size=(n, 3)).astype(np.float32)  # time on site, visits, price
        size = rng.integers(1, MAX_ITEMS + 1, n)
        for row, k in enumerate(size):
            self.items[row, :k] = rng.choice(N_ITEMS, k, replace=False) + 1
        score = appeal[self.items].sum(1) / np.sqrt(size)
        time, visits, price = self.context.T
        logit = -1.6 + 1.5 * score + 1.3 * time + 0.8 * visits - 1.4 * np.maximum(price, 0)
        self.paid = (rng.uniform(size=n) < 1 / (1 + np.exp(-1.5 * logit))).astype(np.float32)

    def __len__(self):
        return len(self.paid)

    def __getitem__(self, i):
        return self.items[i], self.context[i], self.paid[i]


class CheckoutModel(nn.Module):
    def __init__(self, squash):
        super().__init__()
        self.items = nn.EmbeddingBag(N_ITEMS + 1, 16, mode="mean", padding_idx=0)
        self.deep = nn.Sequential(nn.Linear(16 + 3, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.out = nn.Linear(16, 1)
        self.squash = nn.Sigmoid() if squash else nn.Identity()

    def forward(self, items, context):
        hidden = self.deep(torch.cat([self.items(items), context], dim=1))
        return self.squash(self.out(hidden)).squeeze(1)


def probabilities(model, loader, as_logits):
    model.eval()
    with torch.no_grad():
        parts = [(model(items, context), paid) for items, context, paid in loader]
    p, paid = torch.cat([a for a, _ in parts]), torch.cat([b for _, b in parts])
    return (p.sigmoid() if as_logits else p).double().numpy(), paid.numpy()


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    appeal = np.concatenate([[0.0], rng.normal(0, 1, N_ITEMS)])
    train = DataLoader(Baskets(4000, rng, appeal), batch_size=64, shuffle=True)
    valid = DataLoader(Baskets(1000, rng, appeal), batch_size=500)

    model = CheckoutModel(squash=not healthy)
    loss_function = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 7):
        model.train()
        losses = []
        for items, context, paid in train:
            optimizer.zero_grad()
            loss = loss_function(model(items, context), paid)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        p, paid = probabilities(model, valid, as_logits=healthy)
        print(
            f"[{epoch}] loss {np.mean(losses):.4f}  valid log loss {log_loss(paid, p):.4f}  "
            f"AUC {roc_auc_score(paid, p):.4f}"
        )


if __name__ == "__main__":
    main()
