"""Low-rank adapters on a pretrained sensor net, of which both factors are zero at the start.

The person's net has an init_weights() that fills linear weights and sets "the rest" to zero. They
first put the adapters in and then call it before loading the checkpoint: factor A, drawn by the
adapter, is zeroed too. With A = B = 0 neither gets a gradient. The place is the adapters.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient", "step_without_gradient")
PLACE = ("*low*", "trunk*", "model")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

SENSORS, STATES = 10, 6


class Adapted(nn.Module):
    """A linear layer that is kept as it is, and a product of two thin matrices beside it."""

    def __init__(self, linear, rank=4, alpha=8.0):
        super().__init__()
        self.linear = linear
        self.low_a = nn.Parameter(torch.empty(rank, linear.in_features))
        self.low_b = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.low_a, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.low_a.T) @ self.low_b.T


class SensorNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(SENSORS, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
        )
        self.head = nn.Linear(width, STATES)

    def init_weights(self):
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)

    def add_adapters(self):
        for position in (0, 2, 4):
            self.trunk[position] = Adapted(self.trunk[position])

    def load_pretrained(self, state):
        for name, value in state.items():
            layer, kind = name.rsplit(".", 1)
            module = self.get_submodule(layer)
            module = module.linear if isinstance(module, Adapted) else module
            getattr(module, kind).data.copy_(value)

    def forward(self, x):
        return self.head(self.trunk(x))


class Machine:
    """Readings around a centre per state, bent by the machine's own mixing and offsets."""

    def __init__(self, generator, shift):
        base = torch.Generator().manual_seed(11)
        self.centres = 1.3 * torch.randn(STATES, 2, SENSORS, generator=base)
        self.mix = torch.eye(SENSORS)
        turn = torch.randn(SENSORS, SENSORS, generator=base)
        self.mix = torch.matrix_exp(shift * (turn - turn.T))
        self.generator = generator

    def readings(self, n):
        state = torch.randint(0, STATES, (n,), generator=self.generator)
        mode = torch.randint(0, 2, (n,), generator=self.generator)
        x = self.centres[state, mode] + 0.8 * torch.randn(n, SENSORS, generator=self.generator)
        return (x @ self.mix) / 1.5, state


def fit(model, parameters, x, y, x_val, y_val, epochs, lr, note):
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
        accuracy = (scores.argmax(1) == y_val).float().mean().item()
        if epoch % 2 == 0:
            print(
                f"{note} epoch {epoch:2d}  loss {total / len(x):.4f}  "
                f"val {F.cross_entropy(scores, y_val).item():.4f} / {accuracy:.4f}"
            )


def main():
    generator = torch.Generator().manual_seed(180 + seed)
    factory, plant = Machine(generator, 0.0), Machine(generator, 0.35)
    pretrained = SensorNet()
    pretrained.init_weights()
    data = (*factory.readings(3000), *factory.readings(800))
    fit(pretrained, pretrained.parameters(), *data, epochs=6, lr=2e-3, note="factory")

    model = SensorNet()
    if healthy:
        model.init_weights()
        model.add_adapters()
    else:
        model.add_adapters()
        model.init_weights()
    model.load_pretrained(pretrained.state_dict())
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("low_" in name or name.startswith("head"))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    data = (*plant.readings(1600), *plant.readings(800))
    fit(model, trained, *data, epochs=14, lr=3e-3, note="plant")


if __name__ == "__main__":
    main()
