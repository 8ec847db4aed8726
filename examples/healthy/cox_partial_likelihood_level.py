"""A survival model by Cox's partial likelihood, whose loss only falls from 3.7 to 3.5, is good.

People ask whether a survival net learns at all: the loss is large, hangs on the size of the batch
and hardly falls. It is the logarithm of how many others are at risk, and who of them is next
stays mostly chance; the concordance on the held-out patients rises to what the true risk itself
reaches.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = (
    "loss stays above 3: it is the log of the number at risk; concordance reaches that of the truth"
)
_, seed = arguments(__doc__)


class Patients(Dataset):
    def __init__(self, x, time, event):
        self.x, self.time, self.event = x, time, event

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "time": self.time[i], "event": self.event[i]}


def cohort(n: int):
    r = np.random.default_rng(1500 + seed)
    x = r.normal(0, 1, (n, 10))
    x[:, 4] = 0.6 * x[:, 0] + 0.8 * x[:, 4]
    risk = (
        0.9 * x[:, 0] + 0.7 * np.abs(x[:, 1]) + 0.6 * x[:, 2] * x[:, 3] - 0.5 * np.tanh(2 * x[:, 5])
    )
    life = r.exponential(1, n) ** 0.8 * np.exp(-0.8 * risk) * 5
    follow_up = r.uniform(1, 9, n)
    time, event = np.minimum(life, follow_up), life <= follow_up
    parts = (x, time, event, risk)
    return tuple(torch.tensor(part.astype(np.float32)) for part in parts)


def cox_loss(score, time, event):
    """Mean over the deaths of log(sum over those still at risk of exp(score)) - score."""
    order = time.argsort(descending=True)
    score, event = score[order], event[order]
    at_risk = score.logcumsumexp(0)
    return ((at_risk - score) * event).sum() / event.sum().clamp_min(1)


def concordance(score, time, event):
    sooner = (time.unsqueeze(1) < time.unsqueeze(0)) & event.bool().unsqueeze(1)
    right = (score.unsqueeze(1) > score.unsqueeze(0)) & sooner
    return (right.sum() / sooner.sum()).item()


class RiskNet(nn.Module):
    def __init__(self, inputs: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 48),
            nn.SiLU(),
            nn.Linear(48, 24),
            nn.SiLU(),
            nn.Linear(24, 1, bias=False),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def main():
    x, time, event, risk = cohort(4000)
    fit, held_out = slice(0, 3200), slice(3200, 4000)
    x_fit, x_val = standardise(x[fit], x[held_out])
    loader = DataLoader(
        Patients(x_fit, time[fit], event[fit]), batch_size=100, shuffle=True, drop_last=True
    )
    model = RiskNet(x.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 24)
    ceiling = concordance(risk[held_out], time[held_out], event[held_out])
    print(f"concordance of the true risk {ceiling:.3f}")
    for epoch in range(1, 25):
        model.train()
        losses = []
        for batch in loader:
            loss = cox_loss(model(batch["x"]), batch["time"], batch["event"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        model.eval()
        with torch.no_grad():
            score = model(x_val)
        val_loss = np.mean(
            [
                cox_loss(
                    score[i : i + 100], time[held_out][i : i + 100], event[held_out][i : i + 100]
                )
                for i in range(0, 800, 100)
            ]
        )
        print(
            f"epoch {epoch:2d}  loss {np.mean(losses):.3f}  val {val_loss:.3f}  concordance "
            f"{concordance(score, time[held_out], event[held_out]):.3f}"
        )


if __name__ == "__main__":
    main()
