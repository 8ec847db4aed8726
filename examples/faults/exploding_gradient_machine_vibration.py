"""Remaining strength of a machine part from its vibration by an RNN; the gradients explode.

The recurrent matrix of a ReLU network was filled with normal numbers of a width that suits a
layer used once. Passed through 50 times, its gain of more than one per step multiplies up, in
the outputs and far more in the gradients. The place is the recurrent layer, "rnn".
The twin starts from an orthogonal matrix, whose gain is one.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "loss_spike")
PLACE = ("rnn",)
SILENT = True
EXACT = False
EARLY = True


class VibrationRNN(nn.Module):
    def __init__(self, healthy, hidden=48):
        super().__init__()
        self.rnn = nn.RNN(2, hidden, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(hidden, 1)
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.3)
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)
        if healthy:
            nn.init.orthogonal_(self.rnn.weight_hh_l0)
        else:
            nn.init.normal_(self.rnn.weight_hh_l0, std=0.25)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1]).squeeze(-1)


def vibration(n, length, seed):
    """Two axes of acceleration; the target is the energy of both, put together."""
    g = torch.Generator().manual_seed(seed)
    wear = 0.3 + torch.rand(n, 1, generator=g)
    speed = 0.3 + 0.3 * torch.rand(n, 1, generator=g)
    t = torch.arange(length)
    first = wear * torch.sin(speed * t) + 0.15 * torch.randn(n, length, generator=g)
    second = wear.square() * torch.cos(speed * t) + 0.15 * torch.randn(n, length, generator=g)
    strength = wear.squeeze(1)
    return torch.stack([first, second], -1), (strength - 0.8) / 0.29


def train_one_epoch(model, loader, optimizer):
    model.train()
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    return sum(nn.functional.l1_loss(model(x), y).item() for x, y in loader) / len(loader)


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    data = TensorDataset(*vibration(1000, 50, 600 + seed))
    train_set, val_set = random_split(data, [800, 200])
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    model = VibrationRNN(healthy)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    for epoch in range(12):
        loss = train_one_epoch(model, train_loader, optimizer)
        print(f"epoch {epoch:2d}  mse {loss:.4g}  val mae {validate(model, val_loader):.4g}")
