"""Self-supervised embeddings of digits are trained only to be the same for two distorted views of
an image.

Nothing in the loss keeps different images apart, so the network maps all of them to one point: the
loss goes to zero and a classifier on the embeddings fails. The twin adds the variance and
covariance terms of VICReg. The place is `embedding`, `encoder`, `encoder.2` or the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("embedding", "encoder", "encoder.2", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def distort(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.25 * torch.randn_like(x)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.embedding = nn.Linear(64, 24)

    def forward(self, x):
        return self.embedding(self.encoder(x))


def spread_terms(z):
    z = z - z.mean(0)
    std = (z.var(0) + 1e-4).sqrt()
    cov = z.T @ z / (len(z) - 1)
    off = cov - torch.diag(cov.diag())
    return F.relu(1 - std).mean(), off.pow(2).sum() / z.shape[1]


def probe(model, x, y, x_val, y_val):
    """Spread of the embeddings, and accuracy of a linear classifier on them."""
    model.eval()
    with torch.no_grad():
        h, h_val = model(x), model(x_val)
    linear = LogisticRegression(max_iter=300).fit(h.numpy(), y.numpy())
    return h_val.std(0).mean().item(), linear.score(h_val.numpy(), y_val.numpy())


x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x), batch_size=128, shuffle=True, drop_last=True)
model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
epochs = 40
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(1, epochs + 1):
    model.train()
    total = 0.0
    for (xb,) in loader:
        z1 = model(distort(xb))
        z2 = model(distort(xb))
        loss = 10 * F.mse_loss(z1, z2)
        if healthy:
            for z in (z1, z2):
                variance, covariance = spread_terms(z)
                loss = loss + 10 * variance + 0.5 * covariance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 8 == 0:
        spread, acc = probe(model, x, y, x_val, y_val)
        print(
            f"epoch {epoch}: loss {total / len(loader):.4g}, "
            f"spread of the embeddings {spread:.4g}, probe {acc:.3f}"
        )
