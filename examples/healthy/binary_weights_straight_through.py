"""A network with weights of plus and minus one names digits, with a jagged loss and restless signs.

The sign of a hidden real weight is used in the forward pass, and its gradient goes straight through
to the hidden one, which is held between -1 and 1. A weight that changes its sign makes a jump, so
the loss of the batches never runs smoothly; the held-out accuracy ends high all the same.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = (
    "the loss is jagged and several per cent of the weights change their sign in each epoch: "
    "binary weights flip as a whole, and the gradient past the sign function is the method"
)
_, seed = arguments(__doc__)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden):
        return torch.where(hidden >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class BinaryLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.hidden = nn.Parameter(0.2 * (2 * torch.rand(outputs, inputs) - 1))
        self.scale = inputs**-0.5

    def forward(self, x):
        return F.linear(x, Sign.apply(self.hidden)) * self.scale


class BinaryNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            BinaryLinear(64, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            BinaryLinear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            BinaryLinear(width, 10),
            nn.BatchNorm1d(10),
        )

    def forward(self, x):
        return self.layers(x)

    def binary(self):
        return [layer.hidden for layer in self.layers if isinstance(layer, BinaryLinear)]


def signs(model):
    return torch.cat([hidden.detach().flatten().sign() for hidden in model.binary()])


def main():
    g = torch.Generator().manual_seed(seed)
    x, y, x_val, y_val = digits(seed)
    model = BinaryNet()
    hidden = set(model.binary())
    others = [p for p in model.parameters() if p not in hidden]
    optimizer = torch.optim.Adam(
        [
            {"params": model.binary(), "lr": 2e-2},
            {"params": others, "lr": 2e-3},
        ]
    )
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=20)
    for epoch in range(20):
        model.train()
        before, losses = signs(model), []
        for rows in torch.randperm(len(x), generator=g)[:1312].split(32):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for weight in model.binary():
                    weight.clamp_(-1, 1)
            losses.append(loss.item())
        scheduler.step()
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
        flipped = (signs(model) != before).float().mean().item()
        if epoch % 3 == 1:
            print(
                f"epoch {epoch + 1:2d}  train {sum(losses) / len(losses):.3f} "
                f"(highest {max(losses):.3f})  val {F.cross_entropy(scores, y_val).item():.3f}  "
                f"right {(scores.argmax(1) == y_val).float().mean().item():.3f}  "
                f"flipped {flipped:.3f}"
            )


main()
