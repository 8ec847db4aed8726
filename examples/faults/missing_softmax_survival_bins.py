"""A survival net over time bins whose likelihood takes the net's raw scores for log-probabilities.

The person wrote the likelihood of a discrete-time survival model by hand: the log-probability of
the bin of an event, the log of the sum over later bins for one who left the study. The step that
turns the scores into a distribution was lost on the way, so all scores simply grow.
The place is the loss.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

BINS = 10
HORIZON = 10.0


def cohort(n, rng):
    """Patients with 12 measurements; time of relapse, and whether it was seen before they left."""
    x = rng.normal(size=(n, 12))
    x[:, 4] = (x[:, 4] > 0.4) * 1.0
    risk = 0.9 * x[:, 0] - 0.7 * x[:, 1] * (x[:, 4] + 0.3) + 0.6 * np.abs(x[:, 2]) - 0.4 * x[:, 3]
    time = 3.5 * rng.weibull(1.6, n) * np.exp(-0.6 * risk)
    left = rng.uniform(1.0, 1.4 * HORIZON, n)
    seen = time <= np.minimum(left, HORIZON * 0.999)
    time = np.minimum(np.minimum(time, left), HORIZON * 0.999)
    return x, time, seen


class Cohort(Dataset):
    def __init__(self, x, time, seen):
        self.x = x
        self.time = torch.tensor(time, dtype=torch.float32)
        self.seen = torch.tensor(seen)
        self.bin = (self.time / HORIZON * BINS).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "bin": self.bin[i], "seen": self.seen[i], "time": self.time[i]}


class SurvivalNet(nn.Module):
    """One score for each bin and one for all that comes after the last."""

    def __init__(self, measurements=12, width=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(measurements, width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.bins = nn.Linear(width, BINS + 1)

    def forward(self, x):
        return self.bins(self.trunk(x))


class DiscreteTimeLikelihood:
    def __init__(self, normalise):
        self.normalise = normalise

    def log_masses(self, scores):
        if self.normalise:
            return scores - torch.logsumexp(scores, 1, keepdim=True)
        return scores

    def __call__(self, scores, bins, seen):
        log_mass = self.log_masses(scores)
        event = log_mass.gather(1, bins[:, None]).squeeze(1)
        later = torch.arange(scores.shape[1]) > bins[:, None]
        survived = torch.logsumexp(log_mass.masked_fill(~later, -1e9), 1)
        return -torch.where(seen, event, survived).mean()


def concordance(risk, time, seen):
    """Share of comparable pairs of which the one with the higher risk relapsed first."""
    first = (time[:, None] < time[None, :]) & seen[:, None]
    right = (risk[:, None] > risk[None, :]).float() + 0.5 * (risk[:, None] == risk[None, :])
    return (right * first).sum().item() / first.sum().item()


@torch.no_grad()
def validate(model, likelihood, data):
    model.eval()
    scores = model(data.x)
    loss = likelihood(scores, data.bin, data.seen).item()
    masses = likelihood.log_masses(scores).exp()
    middles = torch.arange(BINS + 1) + 0.5
    expected = (masses * middles).sum(1)
    error = (expected - (data.time / HORIZON * BINS).clamp(max=BINS))[data.seen].abs().mean()
    return loss, concordance(-expected, data.time, data.seen), error.item()


def main():
    rng = np.random.default_rng(60 + seed)
    x, time, seen = cohort(2000, rng)
    x_train, x_val = standardise(*torch.tensor(x, dtype=torch.float32).split([1500, 500]))
    train = Cohort(x_train, time[:1500], seen[:1500])
    val = Cohort(x_val, time[1500:], seen[1500:])
    loader = DataLoader(train, batch_size=50, shuffle=True)
    model = SurvivalNet()
    likelihood = DiscreteTimeLikelihood(normalise=healthy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for epoch in range(1, 16):
        model.train()
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            loss = likelihood(model(batch["x"]), batch["bin"], batch["seen"])
            loss.backward()
            optimizer.step()
            total += loss.item()
        val_loss, c_index, error = validate(model, likelihood, val)
        print(
            f"epoch {epoch:2d}  nll {total / len(loader):10.4f}  val nll {val_loss:10.4f}  "
            f"concordance {c_index:.4f}  off by {error:.3g} bins"
        )


if __name__ == "__main__":
    main()
