"""Inverse kinematics of a two-link arm; the activation's name is not in the registry, which falls
back to Identity.

The config says "SiLU" and the table has its keys in lower case, so `.get(name, nn.Identity)` hands
out identities and the network is one affine map. The loss falls to that of a linear fit (silent).
The place is the body of the network. Exact: nothing stands between the affine layers.
"""

import itertools

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("body*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

ACTIVATIONS = {"relu": nn.ReLU, "silu": nn.SiLU, "tanh": nn.Tanh, "gelu": nn.GELU}
config = {
    "hidden": [64, 64, 64],
    "activation": "silu" if healthy else "SiLU",
    "lr": 2e-3,
    "epochs": 12,
}


class ArmNet(nn.Module):
    def __init__(self, hidden, activation):
        super().__init__()
        act = ACTIVATIONS.get(activation, nn.Identity)
        widths = [2, *hidden]
        body = []
        for a, b in itertools.pairwise(widths):
            body += [nn.Linear(a, b), act()]
        self.body = nn.Sequential(*body)
        self.joints = nn.Linear(widths[-1], 2)

    def forward(self, position):
        return self.joints(self.body(position))


def workspace(n, generator):
    """Joint angles (elbow up) and where the hand then is; links of 1.0 and 0.7 m."""
    shoulder = (torch.rand(n, generator=generator) - 0.5) * 2.6
    elbow = 0.3 + torch.rand(n, generator=generator) * 2.2
    hand = torch.stack(
        [
            shoulder.cos() + 0.7 * (shoulder + elbow).cos(),
            shoulder.sin() + 0.7 * (shoulder + elbow).sin(),
        ],
        1,
    )
    return hand, torch.stack([shoulder, elbow - 1.4], 1)


g = torch.Generator().manual_seed(seed)
train, test = workspace(2400, g), workspace(600, g)
loader = DataLoader(TensorDataset(*train), batch_size=64, shuffle=True, generator=g)
model = ArmNet(config["hidden"], config["activation"])
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
criterion = nn.SmoothL1Loss(beta=0.2)

for epoch in range(config["epochs"]):
    model.train()
    total = 0.0
    for hand, angles in loader:
        optimizer.zero_grad()
        loss = criterion(model(hand), angles)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        error = (model(test[0]) - test[1]).abs().mean()
    print(
        f"epoch {epoch} loss {total / len(loader):.4f}  test error "
        f"{torch.rad2deg(error):.1f} degrees"
    )
