"""A tanh network estimates the value of a chess-like position; its weights begin so large that
nearly all units sit at -1 or 1.

The hidden layers are initialised with a normal distribution of standard deviation 1, whatever the
number of inputs. The place is the hidden layers with tanh.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = ("body*", "*tanh*", "board*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

PIECES = 7  # empty, three kinds for each side


def positions(rng, n):
    """6x6 boards; what a position is worth depends on the pieces, their squares, and those who guard each other."""  # noqa: E501
    boards = rng.choice(PIECES, (n, 36), p=[0.64] + [0.06] * 6)
    worth = np.array([0, 1, 3, 5, -1, -3, -5])[boards]
    row, column = np.divmod(np.arange(36), 6)
    central = 1.2 - 0.2 * np.abs(row - 2.5) - 0.2 * np.abs(column - 2.5)
    total = (worth * central).sum(1)
    side = np.sign(worth).reshape(n, 6, 6)
    guards = (side[:, 1:] * side[:, :-1] * side[:, 1:]).sum((1, 2))
    value = np.tanh((total + 0.8 * guards) / 8) + rng.normal(0, 0.08, n)
    planes = np.eye(PIECES, dtype=np.float32)[boards][:, :, 1:].reshape(n, -1)
    return torch.from_numpy(planes), torch.tensor(value, dtype=torch.float32)


class ValueNet(nn.Module):
    def __init__(self, inputs, width=96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
        )
        self.value = nn.Linear(width, 1)
        for layer in self.body:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5 if healthy else 1.0)
                nn.init.zeros_(layer.bias)

    def forward(self, planes):
        return self.value(self.body(planes)).squeeze(1)


class Trainer:
    def __init__(self, model, data, val_data, lr=0.02):
        self.model, self.data, self.val_data = model, data, val_data
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)

    def fit(self, epochs):
        planes, value = self.data
        for epoch in range(epochs):
            losses = []
            for rows in torch.randperm(len(planes)).split(50):
                loss = nn.functional.mse_loss(self.model(planes[rows]), value[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            if epoch % 3 == 2:
                print(
                    f"epoch {epoch} loss {np.mean(losses):.4f} val loss %.4f R2 %.3f"
                    % self.evaluate()
                )

    @torch.no_grad()
    def evaluate(self):
        planes, value = self.val_data
        loss = nn.functional.mse_loss(self.model(planes), value).item()
        return loss, 1 - loss / value.var().item()


rng = np.random.default_rng(seed)
data, val_data = positions(rng, 6000), positions(rng, 1500)
Trainer(ValueNet(36 * 6), data, val_data).fit(12)
