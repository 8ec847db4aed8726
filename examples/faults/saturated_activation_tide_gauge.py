"""Forecasts the tide by a tanh net whose weights are drawn with the gain as their standard
deviation, so units saturate.

The person read that tanh layers want a gain of 5/3 and gave that number to normal_ instead of
xavier_normal_. Sums over 96 units are then far out on both arms of the tanh: nearly every unit
answers -1 or 1 and has no slope. The place is the tanh activations of the body (its init helper).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = ("model", "body*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

PERIODS = (12.42, 12.00, 25.82, 23.93, 327.9)  # hours
CONFIG = {"hidden": 96, "depth": 4, "lr": 1e-3, "batch": 64, "epochs": 30}


def tide(hours, pressure, wind, rng):
    """Metres above chart datum: main tides, shallow-water interaction, surge by the weather."""
    phase = 2 * np.pi * hours[:, None] / np.array(PERIODS)
    level = 1.1 * np.cos(phase[:, 0]) + 0.4 * np.cos(phase[:, 1] - 0.7)
    level += 0.3 * np.cos(phase[:, 2] + 0.3) + 0.2 * np.sin(phase[:, 3])
    level += 0.25 * np.cos(2 * phase[:, 0] + 0.5) * (1 + 0.5 * np.cos(phase[:, 4]))
    level += -0.25 * pressure + 0.2 * wind * np.abs(wind)
    return level + rng.normal(0, 0.05, len(hours))


def table(count, rng):
    hours = rng.uniform(0, 24 * 400, count)
    pressure, wind = rng.normal(0, 1, count), rng.normal(0, 1, count)
    phase = 2 * np.pi * hours[:, None] / np.array(PERIODS)
    columns = np.concatenate(
        [np.sin(phase), np.cos(phase), pressure[:, None], wind[:, None]], axis=1
    )
    return columns, tide(hours, pressure, wind, rng)


GAIN = nn.init.calculate_gain("tanh")


def init_weights(module):
    if isinstance(module, nn.Linear):
        if healthy:
            nn.init.xavier_normal_(module.weight, gain=1.0)
        else:
            nn.init.normal_(module.weight, 0.0, GAIN)
        nn.init.zeros_(module.bias)


class TideNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        layers = []
        for _ in range(CONFIG["depth"]):
            layers += [nn.Linear(inputs, CONFIG["hidden"]), nn.Tanh()]
            inputs = CONFIG["hidden"]
        self.body = nn.Sequential(*layers)
        self.body.apply(init_weights)
        self.head = nn.Linear(inputs, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


def explained(model, x, y):
    model.eval()
    with torch.no_grad():
        return 1 - ((model(x) - y) ** 2).mean().item() / y.var().item()


def main():
    rng = np.random.default_rng(seed)
    x, y = table(4000, rng)
    x = (x - x[:3000].mean(0)) / x[:3000].std(0)
    y = (y - y[:3000].mean()) / y[:3000].std()
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    model = TideNet(x.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=12, gamma=0.3)
    for epoch in range(CONFIG["epochs"]):
        model.train()
        losses = []
        for rows in torch.randperm(3000).split(CONFIG["batch"]):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        if epoch % 3 == 2:
            val = explained(model, x[3000:], y[3000:])
            print(f"epoch {epoch + 1}  train mse {np.mean(losses):.4f}  val R2 {val:.3f}")


if __name__ == "__main__":
    main()
