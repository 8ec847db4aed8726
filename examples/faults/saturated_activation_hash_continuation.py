"""Binary codes for image retrieval (as in HashNet): tanh(beta x), with a beta that grows as
training goes on.

Beta is to grow by a factor of 1.15 each epoch, from 1 to about 8. When the training moved from
epochs to a callback, `sharpen()` came to be called for each batch: after two epochs beta is over
100, every code is +1 or -1, and no gradient gets through. The place is the hash layer. The twin
sharpens after each epoch.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("hash", "hash.act", "hash.project", "hash.project.weight")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class SharpTanh(nn.Module):
    def __init__(self):
        super().__init__()
        self.beta = 1.0

    def forward(self, x):
        return torch.tanh(self.beta * x)


class HashLayer(nn.Module):
    def __init__(self, n_in, bits):
        super().__init__()
        self.project = nn.Linear(n_in, bits)
        self.act = SharpTanh()

    def forward(self, x):
        return self.act(self.project(x))


class HashNet(nn.Module):
    def __init__(self, bits=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.hash = HashLayer(64, bits)

    def forward(self, x):
        return self.hash(self.body(x))


class Sharpen:
    def __init__(self, act, factor=1.15):
        self.act, self.factor = act, factor

    def on_batch_end(self):
        if not healthy:
            self.act.beta *= self.factor

    def on_epoch_end(self):
        if healthy:
            self.act.beta *= self.factor


def pairwise_loss(codes, labels):
    """Weighted logistic loss on inner products, pairs of one class and of two."""
    same = (labels[:, None] == labels[None, :]).float()
    logits = codes @ codes.T * 0.5
    off = ~torch.eye(len(labels), dtype=torch.bool)
    return nn.functional.binary_cross_entropy_with_logits(
        logits[off], same[off], pos_weight=torch.tensor(9.0)
    )


@torch.no_grad()
def precision_at_10(model, queries, query_labels, base, base_labels):
    model.eval()
    similarity = model(queries).sign() @ model(base).sign().T
    found = base_labels[similarity.topk(10, dim=1).indices]
    return (found == query_labels[:, None]).float().mean().item()


x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = HashNet()
callback = Sharpen(model.hash.act)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = pairwise_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        callback.on_batch_end()
        total += loss.item()
    callback.on_epoch_end()
    score = precision_at_10(model, x_val, y_val, x, y)
    print(f"epoch {epoch:2d} loss {total / len(loader):.3f} val precision@10 {score:.3f}")
