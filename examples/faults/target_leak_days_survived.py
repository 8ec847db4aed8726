"""A survival classifier for an intensive care unit is given every numeric column of the cohort
table, among them the days survived.

The person picked the inputs by type, all numbers but the patient's number and the label. The
table also has the follow-up time, from which the label (died within 30 days) was made. It is not
known on the day of admission: there the hospital's system fills in a default. The validation is
near perfect and the use is bad. The place is the input.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

HOURS = 24


def cohort(count, rng):
    """The table of admissions and one day of vital signs for each."""
    severity = rng.normal(0, 1, count)
    age = np.clip(rng.normal(62, 15, count), 18, 95)
    table = pd.DataFrame(
        {
            "patient": np.arange(count),
            "age": age,
            "lactate": np.exp(0.3 + 0.35 * severity + rng.normal(0, 0.3, count)),
            "creatinine": np.exp(0.1 + 0.2 * severity + rng.normal(0, 0.4, count)),
            "unit": rng.choice(["surgical", "medical"], count),
        }
    )
    trend = rng.normal(0, 1, count)
    hour = np.linspace(-1, 1, HOURS)
    pulse = 85 + 6 * severity[:, None] + 8 * trend[:, None] * hour
    pulse = pulse + rng.normal(0, 5, (count, HOURS))
    pressure = 82 - 4 * severity[:, None] - 5 * trend[:, None] * hour
    pressure = pressure + rng.normal(0, 6, (count, HOURS))
    risk = -4.0 + 1.0 * severity + 1.1 * trend + 0.04 * (age - 62)
    days = rng.exponential(1, count) / np.exp(risk)
    table["followup_days"] = np.minimum(days, 365)
    table["died_30d"] = (days <= 30).astype(int)
    return table, np.stack([pulse, pressure], 1)


class TwoInputNet(nn.Module):
    def __init__(self, static_columns):
        super().__init__()
        self.vitals = nn.Sequential(
            nn.Conv1d(2, 16, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(160, 24), nn.ReLU()
        )
        self.static = nn.Sequential(nn.Linear(static_columns, 24), nn.ReLU())
        self.risk = nn.Sequential(nn.Dropout(0.2), nn.Linear(48, 1))

    def forward(self, batch):
        joined = torch.cat([self.vitals(batch["vitals"]), self.static(batch["static"])], 1)
        return self.risk(joined)[:, 0]


def binary_loss(score, died):
    return (torch.nn.functional.softplus(score) - score * died).mean()


def as_tensors(table, vitals, columns, statistics):
    mean, std = statistics
    static = (np.log1p(table[columns].to_numpy()) - mean) / std
    return {
        "vitals": torch.tensor((vitals - np.array([[85], [82]])) / 12, dtype=torch.float32),
        "static": torch.tensor(static, dtype=torch.float32),
        "died": torch.tensor(table["died_30d"].to_numpy(), dtype=torch.float32),
    }


@torch.no_grad()
def evaluate(net, batch):
    net.eval()
    score = net(batch)
    return binary_loss(score, batch["died"]).item(), roc_auc_score(batch["died"], score)


def main():
    rng = np.random.default_rng(300 + seed)
    table, vitals = cohort(3600, rng)
    hidden = ["patient", "died_30d"] + (["followup_days"] if healthy else [])
    columns = [name for name in table.select_dtypes("number") if name not in hidden]
    logs = np.log1p(table[columns].to_numpy()[:2000])
    statistics = logs.mean(0), logs.std(0)
    train = as_tensors(table[:2000], vitals[:2000], columns, statistics)
    val = as_tensors(table[2000:2800], vitals[2000:2800], columns, statistics)
    ward = table[2800:].assign(followup_days=0.0)
    in_use = as_tensors(ward, vitals[2800:], columns, statistics)

    net = TwoInputNet(len(columns))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    for epoch in range(1, 9):
        net.train()
        losses = []
        for rows in torch.randperm(2000).split(50):
            batch = {name: part[rows] for name, part in train.items()}
            loss = binary_loss(net(batch), batch["died"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        val_loss, auc = evaluate(net, val)
        print(f"epoch {epoch:2d}  train {np.mean(losses):.4f}  val {val_loss:.4f}  AUC {auc:.3f}")
    print("on the day of admission: loss {:.4f}  AUC {:.3f}".format(*evaluate(net, in_use)))


main()
