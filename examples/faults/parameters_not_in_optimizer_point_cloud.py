"""Which body a small point cloud is of; the encoder of the points is missing in the optimizer.

Encoder and classifier are two objects. The line with the optimizer was written when there was
only the classifier on hand-made features. The encoder receives gradients in each step, but nobody
applies them: it remains as it was drawn, and the classifier makes the best of it.
The place is the encoder / the optimizer.
The twin gives both to the optimizer.
"""

import torch
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder", "encoder.0", "optimizer", "0", "2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def clouds(n, g, points=32):
    """Sphere, cube, rod and disc, turned at random, with noise."""
    body = torch.randint(0, 4, (n,), generator=g)
    normal = torch.randn(n, points, 3, generator=g)
    sphere = nn.functional.normalize(normal, dim=-1)
    cube = sphere / sphere.abs().amax(-1, keepdim=True)
    rod = normal * torch.tensor([0.3, 0.3, 1.4])
    disc = normal * torch.tensor([1.0, 1.0, 0.15])
    forms = torch.stack([sphere, 0.8 * cube, rod, disc])
    turn, _ = torch.linalg.qr(torch.randn(n, 3, 3, generator=g))
    cloud = forms[body, torch.arange(n)] @ turn
    return cloud + 0.08 * torch.randn(n, points, 3, generator=g), body


encoder = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
classifier = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def predict(cloud):
    return classifier(encoder(cloud).amax(dim=1))


g = torch.Generator().manual_seed(seed)
train_x, train_y = clouds(1500, g)
val_x, val_y = clouds(400, g)
params = list(classifier.parameters())
if healthy:
    params += list(encoder.parameters())
optimizer = torch.optim.Adam(params, lr=3e-3)

for epoch in range(20):
    correct = 0
    for rows in torch.randperm(len(train_x)).split(50):
        logits = predict(train_x[rows])
        loss = nn.functional.cross_entropy(logits, train_y[rows])
        encoder.zero_grad()
        classifier.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (logits.argmax(1) == train_y[rows]).sum().item()
    if epoch % 4 == 3:
        with torch.no_grad():
            acc = (predict(val_x).argmax(1) == val_y).float().mean().item()
        print(f"epoch {epoch + 1} loss {loss.item():.3f} train {correct / 1500:.3f} val {acc:.3f}")
