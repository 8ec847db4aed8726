"""Learns to embed motion recordings from pairs of views; the spread is taken along the wrong axis.

The variance term of the self-supervised loss, written by hand, takes the deviation over the
features of one row, not over the batch. One constant vector with spread-out entries satisfies all
terms, and every recording lands on it. The place is the loss; the encoder's output collapses.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.linear_model import LogisticRegression
from torch import nn

KIND = "representation_collapse"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "encoder*", "projector*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CHANNELS, LENGTH, ACTIVITIES = 3, 48, 5


def recordings(count):
    """Accelerations of five activities: each has its own speeds and strengths on three axes."""
    style = torch.Generator().manual_seed(11)
    speed = 0.15 + 0.75 * torch.rand(ACTIVITIES, CHANNELS, generator=style)
    strength = 0.4 + 1.2 * torch.rand(ACTIVITIES, CHANNELS, generator=style)
    activity = torch.randint(0, ACTIVITIES, (count,))
    phase = 6.28 * torch.rand(count, CHANNELS, 1)
    tempo = 1 + 0.12 * torch.randn(count, 1, 1)
    time = torch.arange(LENGTH).view(1, 1, -1)
    wave = torch.sin(time * speed[activity].unsqueeze(-1) * tempo + phase)
    x = wave * strength[activity].unsqueeze(-1) + 0.3 * torch.randn(count, CHANNELS, LENGTH)
    return (x - x.mean((0, 2), keepdim=True)) / x.std((0, 2), keepdim=True), activity


def view(x):
    """Another look at the same recordings: rolled in time, scaled and with sensor noise."""
    shift = int(torch.randint(0, LENGTH, ()))
    scale = 1 + 0.15 * torch.randn(len(x), 1, 1)
    return x.roll(shift, -1) * scale + 0.15 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(CHANNELS, width, 7, padding=3),
            nn.GELU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(width, 2 * width, 5, stride=2, padding=2),
            nn.GELU(),
        )

    def forward(self, x):
        return self.features(x).mean(-1)


def off_diagonal(matrix):
    return matrix - torch.diag(torch.diagonal(matrix))


def spread_term(z):
    std = torch.sqrt(z.var(dim=0 if healthy else 1) + 1e-4)
    return F.relu(1 - std).mean()


def covariance_term(z):
    z = z - z.mean(0)
    covariance = z.T @ z / (len(z) - 1)
    return off_diagonal(covariance).pow(2).sum() / z.shape[1]


def pair_loss(a, b):
    alike = F.mse_loss(a, b)
    spread = spread_term(a) + spread_term(b)
    return 25 * alike + 25 * spread + covariance_term(a) + covariance_term(b)


def probe(encoder, train, train_labels, test, test_labels):
    """How well a linear model reads the activity from the frozen embedding."""
    encoder.eval()
    with torch.no_grad():
        known, new = encoder(train), encoder(test)
    known, new = F.normalize(known, dim=1), F.normalize(new, dim=1)
    reader = LogisticRegression(C=10, max_iter=500).fit(known.numpy(), train_labels)
    encoder.train()
    return reader.score(new.numpy(), test_labels), new.std(0).mean().item()


def main():
    x, activity = recordings(1200)
    train, test = x[:900], x[900:]
    encoder = Encoder()
    projector = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
    parameters = [*encoder.parameters(), *projector.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=1e-3)
    for epoch in range(30):
        total = 0.0
        batches = torch.randperm(900).split(100)
        for rows in batches:
            a = projector(encoder(view(train[rows])))
            b = projector(encoder(view(train[rows])))
            loss = pair_loss(a, b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 4:
            score, std = probe(encoder, train, activity[:900], test, activity[900:])
            print(
                f"epoch {epoch + 1:2d}  loss {total / len(batches):7.3f}  "
                f"probe accuracy {score:.3f}  deviation of unit embeddings {std:.4f}"
            )


main()
