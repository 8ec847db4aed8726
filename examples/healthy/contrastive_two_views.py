"""Contrastive learning (NT-Xent) of digit embeddings from two distorted views, and a linear probe
on them.

The loss starts near the log of the batch's size and stays high, the labels are row numbers, the
projection is thrown away.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "labels are positions in the batch, the diagonal is -inf, the loss stays far from zero"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
TEMPERATURE, EPOCHS = 0.2, 40


def view_of(x):
    keep = (torch.rand_like(x) > 0.25).float()
    return x * keep + 0.3 * torch.randn_like(x)


def nt_xent(a, b):
    z = F.normalize(torch.cat([a, b]), dim=1)
    scores = z @ z.T / TEMPERATURE
    scores = scores.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    n = len(a)
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(scores, partner)


encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
projector = nn.Sequential(nn.ReLU(), nn.Linear(32, 32))
parameters = [*encoder.parameters(), *projector.parameters()]
optimizer = torch.optim.Adam(parameters, lr=2e-3)
loader = DataLoader(TensorDataset(x), batch_size=128, shuffle=True, drop_last=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)


def probe():
    encoder.eval()
    with torch.no_grad():
        h, h_val = encoder(x).numpy(), encoder(x_val).numpy()
    return LogisticRegression(max_iter=200).fit(h, y.numpy()).score(h_val, y_val.numpy())


for epoch in range(1, EPOCHS + 1):
    encoder.train()
    projector.train()
    total = 0.0
    for (xb,) in loader:
        loss = nt_xent(projector(encoder(view_of(xb))), projector(encoder(view_of(xb))))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, probe {probe():.3f}")
