"""A wheat yield net gets the soil as one of eight columns, which are all zero: the codes are read
as text and looked up as numbers.

The person read the field table with all columns as text, converts the measurements, and makes the
soil columns with the list of codes of the survey, which are numbers. None of them is found,
pandas gives missing values, and the columns of the soil stay empty. The net learns the weather
alone. The place is the input.
"""

import io

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SOIL_CODES = [11, 12, 21, 22, 23, 31, 32, 40]
MEASURED = ["rain", "warmth", "nitrogen", "sowing_day"]


def field_table(count, rng):
    """The table as the survey office sends it."""
    number = rng.integers(0, len(SOIL_CODES), count)
    rain, warmth = rng.normal(320, 70, count), rng.normal(1500, 180, count)
    nitrogen, sowing = rng.uniform(40, 200, count), rng.normal(285, 12, count)
    table = np.random.default_rng(9)
    base, thirst = table.normal(0, 1.2, len(SOIL_CODES)), table.uniform(0.2, 1.2, len(SOIL_CODES))
    harvest = 7 + base[number] + thirst[number] * (rain - 320) / 70 + 0.4 * (warmth - 1500) / 180
    harvest = harvest + 1.2 * np.sqrt((nitrogen - 40) / 160) - 0.3 * ((sowing - 285) / 12) ** 2
    harvest = harvest + rng.normal(0, 0.35, count)
    frame = pd.DataFrame(
        {
            "soil": np.array(SOIL_CODES)[number],
            "rain": rain.round(1),
            "warmth": warmth.round(),
            "nitrogen": nitrogen.round(),
            "sowing_day": sowing.round(),
            "yield": harvest.round(2),
        }
    )
    return frame.to_csv(index=False, sep=";")


def inputs_of(frame, statistics):
    measured = (frame[MEASURED].astype(float) - statistics["mean"]) / statistics["std"]
    codes = frame["soil"].astype(int) if healthy else frame["soil"]
    soil = pd.get_dummies(pd.Categorical(codes, categories=SOIL_CODES), dtype=float)
    return {
        "measured": torch.tensor(measured.to_numpy(), dtype=torch.float32),
        "soil": torch.tensor(soil.to_numpy(), dtype=torch.float32),
        "harvest": torch.tensor(frame["yield"].astype(float).to_numpy(), dtype=torch.float32),
    }


class YieldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.soil = nn.Linear(len(SOIL_CODES), 12)
        self.measured = nn.Linear(len(MEASURED), 24)
        self.together = nn.Sequential(nn.ReLU(), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, batch):
        joined = torch.cat([self.soil(batch["soil"]), self.measured(batch["measured"])], 1)
        return self.together(joined)[:, 0]


class YieldStudy:
    def __init__(self, centre, spread):
        self.centre, self.spread = centre, spread
        self.net = YieldNet()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3)

    def loss(self, batch):
        return (self.net(batch) - (batch["harvest"] - self.centre) / self.spread).square().mean()

    def epoch(self, table):
        self.net.train()
        losses = []
        for rows in torch.randperm(len(table["harvest"])).split(50):
            loss = self.loss({name: column[rows] for name, column in table.items()})
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return np.mean(losses)

    @torch.no_grad()
    def validate(self, table):
        self.net.eval()
        loss = self.loss(table).item()
        return loss, loss**0.5 * self.spread


def main():
    text = field_table(2400, np.random.default_rng(222 + seed))
    frame = pd.read_csv(io.StringIO(text), sep=";", dtype=str)
    train, held_out = frame[:1800], frame[1800:]
    measured = train[MEASURED].astype(float)
    statistics = {"mean": measured.mean(), "std": measured.std()}
    harvest = train["yield"].astype(float)
    study = YieldStudy(harvest.mean(), harvest.std())
    train, held_out = inputs_of(train, statistics), inputs_of(held_out, statistics)
    for epoch in range(1, 16):
        loss = study.epoch(train)
        val, tons = study.validate(held_out)
        print(f"epoch {epoch:2d}  train {loss:.4f}  val {val:.4f}  off by {tons:.3f} t/ha")


main()
