"""A plain ReLU recurrence that adds up a ride's energy; its gradients are clipped after the step.

Whoever tidied the loop moved `clip_grad_norm_` to the other "housekeeping" below
`optimizer.step()`. There it shortens gradients that are already spent. Over 60 steps in time the
first long one throws the recurrence out, and its products grow without bound. The place is the
loop / the recurrent weights. The twin clips before the step.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high", "loss_spike", "nan_input")
PLACE = ("loop", "optimizer", "rnn", "rnn.weight_hh_l0")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

LENGTH = 60
g = torch.Generator().manual_seed(seed)


def rides(n):
    """Minutes of slope, speed and headwind.

    The energy is what the motor gives, brakes give nothing back.
    """
    slope = torch.randn(n, LENGTH, generator=g)
    speed = 1 + 0.3 * torch.randn(n, LENGTH, generator=g)
    wind = torch.randn(n, 1, generator=g) * 0.5 + 0.5 * torch.randn(n, LENGTH, generator=g)
    power = torch.relu(slope + 0.8 * wind + 0.4 * speed)
    energy = power.mean(1, keepdim=True) + 0.02 * torch.randn(n, 1, generator=g)
    return torch.stack([slope, speed - 1, wind], -1), 3 * (energy - 0.78)


class Motor(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.rnn = nn.RNN(3, width, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(width, 1)
        with torch.no_grad():  # Le, Jaitly and Hinton: start as the identity
            self.rnn.weight_hh_l0.copy_(torch.eye(width))
            self.rnn.weight_ih_l0.normal_(0, 0.05)
            self.rnn.bias_hh_l0.zero_()
            self.rnn.bias_ih_l0.zero_()

    def forward(self, sequence):
        hidden, _ = self.rnn(sequence)
        return self.out(hidden[:, -1])


x_val, y_val = rides(500)
model = Motor()
optimizer = torch.optim.SGD(model.parameters(), lr=0.015, momentum=0.9)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=600)
for step in range(1, 601):
    model.train()
    ride, energy = rides(32)
    loss = nn.functional.mse_loss(model(ride), energy)
    optimizer.zero_grad()
    loss.backward()
    if healthy:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    if not healthy:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    schedule.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(
            f"step {step} train {loss.item():.4g} val {val:.4g} "
            f"R2 {1 - val / y_val.var().item():.3f}"
        )
