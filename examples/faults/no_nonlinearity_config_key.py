"""Strength of concrete from its mix; the config says "activations" and the builder reads
"activation".

`cfg.get("activation", "identity")` never complains about a key that nobody reads. Four affine
layers in a row are one, and the strength is far from linear in the age and the ratio of water to
cement. The place is the model (its layers). The twin's config has the builder's key.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("0", "1", "2", "net", "net.0")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

CONFIG = {"hidden": [64, 64, 32], "lr": 2e-3, "batch_size": 64, "epochs": 25}
CONFIG["activation" if healthy else "activations"] = "relu"
FUNCTIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "identity": nn.Identity}


def build(inputs, cfg):
    activation = FUNCTIONS[cfg.get("activation", "identity")]
    layers, width = [], inputs
    for hidden in cfg["hidden"]:
        layers += [nn.Linear(width, hidden), activation()]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, 1))


def concrete(n):
    g = torch.Generator().manual_seed(seed)
    cement = 150 + 350 * torch.rand(n, generator=g)
    water = 120 + 110 * torch.rand(n, generator=g)
    slag = 250 * torch.rand(n, generator=g) * (torch.rand(n, generator=g) < 0.5)
    plasticiser = 15 * torch.rand(n, generator=g)
    age = torch.exp(5.5 * torch.rand(n, generator=g))
    binder = cement + 0.6 * slag
    cured = 1 - torch.exp(-age / 25)
    strength = (
        85 * cured * torch.exp(-1.2 * water / binder) + 12 * torch.cos(plasticiser / 3) * cured
    )
    strength = strength + 2.0 * torch.randn(n, generator=g)
    return torch.stack([cement, water, slag, plasticiser, age], 1), strength[:, None]


x, y = concrete(2400)
x, x_val = standardise(x[:1900], x[1900:])
y, y_val = standardise(y[:1900], y[1900:])
loader = DataLoader(TensorDataset(x, y), batch_size=CONFIG["batch_size"], shuffle=True)
model = build(x.shape[1], CONFIG)
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])

for epoch in range(CONFIG["epochs"]):
    model.train()
    total = 0.0
    for mix, strength in loader:
        loss = nn.functional.mse_loss(model(mix), strength)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    print(f"epoch {epoch} train {total:.4f} val {val:.4f} R2 {1 - val / y_val.var().item():.3f}")
