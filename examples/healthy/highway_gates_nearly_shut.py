"""A deep highway network tells the state of a gearbox, and its gates are nearly shut at the start.

The bias of each gate begins at -3: a layer passes on 95 per cent of its input as it is, and its own
weights get only a small gradient. That is what makes so deep a network trainable; gates that are
needed open by and by.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the gates stand near 0.05 at the start and the inner layers get small gradients: the bias "
    "of -3 is set on purpose, the input is carried through, and the gates open as they are needed"
)
_, seed = arguments(__doc__)

STATES, LAYERS, WIDTH = 5, 10, 40
TEETH = torch.tensor([[7, 11], [7, 13], [9, 11], [9, 13], [11, 13]])


def spectra(n, g):
    """Order spectra of vibration: two meshing orders with sidebands, on a rising floor."""
    state = torch.randint(0, STATES, (n,), generator=g)
    order = torch.arange(32.0)
    x = 0.3 * torch.randn(n, 32, generator=g) + 0.03 * order
    for column in range(2):
        centre = TEETH[state, column, None] + 0.25 * torch.randn(n, 1, generator=g)
        height = 0.6 + 0.9 * torch.rand(n, 1, generator=g)
        for side, share in ((0, 1.0), (-2, 0.5), (2, 0.5)):
            x = x + share * height * torch.exp(-((order - centre - side) ** 2))
    return x, state


class Highway(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.change = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -3.0)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        return gate * F.relu(self.change(x)) + (1 - gate) * x, gate.mean()


class GearNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inwards = nn.Linear(32, WIDTH)
        self.layers = nn.ModuleList(Highway(WIDTH) for _ in range(LAYERS))
        self.outwards = nn.Linear(WIDTH, STATES)

    def forward(self, x):
        x, gates = torch.tanh(self.inwards(x)), []
        for layer in self.layers:
            x, gate = layer(x)
            gates.append(gate.item())
        return self.outwards(x), gates


g = torch.Generator().manual_seed(seed)
(x, y), (x_val, y_val) = spectra(4000, g), spectra(600, g)
mean, std = x.mean(0), x.std(0)
x, x_val = (x - mean) / std, (x_val - mean) / std
model = GearNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
for epoch in range(6):
    total = 0.0
    for number, rows in enumerate(torch.randperm(len(x), generator=g).split(80)):
        scores, gates = model(x[rows])
        loss = F.cross_entropy(scores, y[rows])
        optimizer.zero_grad()
        loss.backward()
        if epoch == number == 0:
            inner = model.layers[5].change.weight.grad.norm().item()
            print(
                f"gradients at the first step: layer 5 {inner:.4f}, "
                f"output {model.outwards.weight.grad.norm().item():.4f}, gates {gates[5]:.3f}"
            )
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    with torch.no_grad():
        scores, gates = model(x_val)
    print(
        f"epoch {epoch + 1}  train {total / len(x):.3f}  "
        f"val {F.cross_entropy(scores, y_val).item():.3f}  "
        f"right {(scores.argmax(1) == y_val).float().mean().item():.3f}  "
        f"gates {min(gates):.3f} to {max(gates):.3f}"
    )
