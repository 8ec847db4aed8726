"""A net stands in for a flow simulation; its targets stay in kelvin and pascal.

The inputs are scaled, but the outputs of the simulation are as they were: outlet temperatures of
some 330 K and pressure losses of tens of thousands of Pa. The squared error is all about pressure,
of which the small steps from 0 get a part only, and the temperature is off by more than its whole
range. The place is the labels (the loss).
"""

import torch
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("labels", "loss")
SILENT = True
EXACT = False
EARLY = True


class Scaler:
    def fit(self, values):
        self.mean, self.std = values.mean(0), values.std(0)
        return self

    def transform(self, values):
        return (values - self.mean) / self.std

    def inverse(self, values):
        return values * self.std + self.mean


class NoScaler(Scaler):
    def transform(self, values):
        return values

    def inverse(self, values):
        return values


class Surrogate(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.head = nn.Linear(64, outputs)

    def forward(self, design):
        return self.head(self.body(design))


def simulate(n):
    """Flow (kg/s), diameter and length (m), inlet, wall (K) -> outlet (K), pressure loss (Pa)."""
    flow = 0.2 + 0.6 * torch.rand(n)
    diameter = 0.02 + 0.02 * torch.rand(n)
    length = 2 + 6 * torch.rand(n)
    inlet = 285 + 20 * torch.rand(n)
    wall = 340 + 60 * torch.rand(n)
    velocity = flow / (1000 * 0.785 * diameter**2)
    exchange = 0.06 * length * diameter**-0.2 / flow**0.2
    outlet = wall - (wall - inlet) * torch.exp(-exchange)
    pressure = 0.02 * length / diameter * 500 * velocity**2 * 40
    design = torch.stack([flow, diameter, length, inlet, wall], 1)
    result = torch.stack([outlet, pressure], 1)
    return design, result * (1 + 0.003 * torch.randn_like(result))


def r2(predicted, true):
    return 1 - ((predicted - true) ** 2).mean(0) / true.var(0)


def main():
    healthy, _ = arguments(__doc__)
    design, result = simulate(2400)
    train_design, test_design = design[:2000], design[2000:]
    train_result, test_result = result[:2000], result[2000:]
    x_scaler = Scaler().fit(train_design)
    y_scaler = (Scaler() if healthy else NoScaler()).fit(train_result)
    train_set = TensorDataset(x_scaler.transform(train_design), y_scaler.transform(train_result))
    loader = DataLoader(train_set, batch_size=64, shuffle=True)

    model = Surrogate(5, 2)
    criterion = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 41):
        model.train()
        epoch_loss = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item() * len(x)
        if epoch % 4 == 0:
            model.eval()
            with torch.no_grad():
                predicted = y_scaler.inverse(model(x_scaler.transform(test_design)))
            temperature, pressure = r2(predicted, test_result).tolist()
            print(
                f"{epoch:3d}: loss {epoch_loss / len(train_set):.5g}   "
                f"R2 temperature {temperature:.3f}, pressure {pressure:.3f}"
            )


if __name__ == "__main__":
    main()
