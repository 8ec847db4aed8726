"""Band gaps of mixed crystals from their composition; the activations are all Identity.

The builder looks the activation up by its name in the config: `getattr(nn, name, nn.Identity)`.
The config says "relu", the class is `ReLU`, and the default that was meant for "none" steps in.
Four linear layers in a row are one linear layer. The place is the layers. The twin has "ReLU".
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("net", "layers", "model", "[0-6]", "[0246].weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
CONFIG = {
    "hidden": [64, 64, 64],
    "activation": "ReLU" if healthy else "relu",
    "lr": 1.5e-3,
    "epochs": 24,
    "batch_size": 64,
}


def crystals(n, g):
    """Shares of five elements, strain and temperature; the gap bows with each pair's product."""
    shares = -torch.log(torch.rand(n, 5, generator=g))
    shares = shares / shares.sum(1, keepdim=True)
    other = torch.randn(n, 2, generator=g)
    pure = torch.tensor([0.4, 1.4, 1.1, 2.3, 3.4])
    bow = torch.tensor([[0, 4.0, 0, -3, 0], [0, 0, 6, 0, 0], [0, 0, 0, 0, -7.0], [0] * 5, [0] * 5])
    gap = shares @ pure - torch.einsum("ni,ij,nj->n", shares, bow, shares)
    gap = gap + 0.25 * other[:, 0].abs() - 0.15 * other[:, 1] * (1 + 2 * shares[:, 0])
    gap = gap + 0.04 * torch.randn(n, generator=g)
    return torch.cat([shares, other], 1), gap


def build_mlp(n_in, n_out, config):
    activation = getattr(nn, config["activation"], nn.Identity)
    layers, width = [], n_in
    for hidden in config["hidden"]:
        layers += [nn.Linear(width, hidden), activation()]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, n_out))


g = torch.Generator().manual_seed(seed)
x, y = crystals(2600, g)
x_train, y_train, x_val, y_val = x[:2000], y[:2000], x[2000:], y[2000:]
x_mean, x_std, y_mean, y_std = x_train.mean(0), x_train.std(0), y_train.mean(), y_train.std()
x_train, x_val = (x_train - x_mean) / x_std, (x_val - x_mean) / x_std
y_train, y_val = (y_train - y_mean) / y_std, (y_val - y_mean) / y_std

loader = DataLoader(TensorDataset(x_train, y_train), CONFIG["batch_size"], shuffle=True)
model = build_mlp(7, 1, CONFIG)
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 3 * CONFIG["lr"], epochs=CONFIG["epochs"], steps_per_epoch=len(loader)
)
for epoch in range(CONFIG["epochs"]):
    model.train()
    for inputs, gap in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs).squeeze(-1), gap)
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val).squeeze(-1), y_val).item()
    if epoch % 4 == 3:
        error = val**0.5 * y_std.item()
        print(f"epoch {epoch + 1} val mse {val:.4f} R2 {1 - val:.3f} error {error:.3f} eV")
