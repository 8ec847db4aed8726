"""A deep, narrow network for the digits; its activation is the config's default, "sigmoid".

"Deeper is better", so eight hidden layers; the experiment file sets the depth and not the
activation, and the default is from the days of one hidden layer. Each sigmoid passes on a quarter
of a gradient at best: the first layers get nothing, the loss stays at ln 10. The place is the
first layers. The twin sets "relu".
"""

from dataclasses import dataclass

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("0.weight", "0.bias", "2.weight", "4.weight", "0", "2")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Config:
    depth: int = 1
    width: int = 48
    activation: str = "sigmoid"
    lr: float = 0.02
    epochs: int = 14


cfg = Config(depth=8, activation="relu") if healthy else Config(depth=8)


def build(cfg):
    activation = {"sigmoid": nn.Sigmoid, "relu": nn.ReLU}[cfg.activation]
    layers, width = [], 64
    for _ in range(cfg.depth):
        layers += [nn.Linear(width, cfg.width), activation()]
        width = cfg.width
    layers.append(nn.Linear(width, 10))
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity=cfg.activation)
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = build(cfg)
optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, weight_decay=1e-4)

for epoch in range(cfg.epochs):
    model.train()
    total = 0.0
    for inputs, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), target)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    val = nn.functional.cross_entropy(logits, y_val).item()
    accuracy = (logits.argmax(1) == y_val).float().mean().item()
    if epoch % 2:
        print(f"epoch {epoch + 1} train {total:.4f} val {val:.4f} accuracy {accuracy:.3f}")
