"""Siamese learning of digits without the stop-gradient: all pictures get one embedding.

The person replaced the paper's distance function by the library's cosine similarity, and with it
went the detach of the second branch that was hidden inside. Both branches now move towards each
other, the loss is soon near its lower end of -1, the embeddings say little. The place: the loss.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional as F

KIND = "representation_collapse"
ACCEPT = ("detached_graph",)
PLACE = ("loss", "model", "encoder*", "projector*", "predictor*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class Siamese(nn.Module):
    def __init__(self, width=128, embedding=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, width),
            nn.ReLU(),
        )
        self.projector = nn.Sequential(
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, embedding),
        )
        self.predictor = nn.Sequential(
            nn.Linear(embedding, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, embedding)
        )

    def forward(self, pictures):
        z = self.projector(self.encoder(pictures))
        return z, self.predictor(z)


def view(pictures):
    """A random shift, brightness, a lost patch and noise."""
    rows, columns = torch.randint(-1, 2, (2,)).tolist()
    changed = torch.roll(pictures, (rows, columns), (2, 3))
    changed = changed * (0.7 + 0.6 * torch.rand(len(pictures), 1, 1, 1))
    keep = torch.ones_like(changed)
    top, left = torch.randint(0, 6, (2,)).tolist()
    keep[:, :, top : top + 3, left : left + 3] = 0
    return changed * keep + 0.2 * torch.randn_like(changed)


def siamese_loss(prediction, other):
    if healthy:
        other = other.detach()
    return -F.cosine_similarity(prediction, other, dim=1).mean()


@torch.no_grad()
def embed(model, pictures):
    model.eval()
    return F.normalize(model(pictures)[0], dim=1)


def probe(model, x, y, x_val, y_val):
    train, val = embed(model, x), embed(model, x_val)
    reader = LogisticRegression(max_iter=300).fit(train.numpy(), y.numpy())
    return reader.score(val.numpy(), y_val.numpy()), train.std(0).mean().item()


def main():
    bunch = load_digits()
    pictures = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
    pictures = (pictures - pictures.mean()) / pictures.std()
    labels = torch.tensor(bunch.target)
    order = torch.randperm(len(labels))
    x, x_val = pictures[order[:1300]], pictures[order[1300:]]
    y, y_val = labels[order[:1300]], labels[order[1300:]]
    model = Siamese()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.06, momentum=0.9, weight_decay=3e-4)
    epochs = 30
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        rows = torch.randperm(len(x)).split(100)
        for index in rows:
            (z1, p1), (z2, p2) = model(view(x[index])), model(view(x[index]))
            loss = (siamese_loss(p1, z2) + siamese_loss(p2, z1)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        if epoch % 6 == 5:
            score, spread = probe(model, x, y, x_val, y_val)
            print(
                f"epoch {epoch:2d} loss {total / len(rows):.4f} deviation of unit embeddings "
                f"{spread:.4f} (at most {32**-0.5:.3f}) probe accuracy {score:.3f}"
            )


main()
