"""A ReLU recurrent network integrates metered flow over 50 readings, trained without any clipping.

The cell is written by hand and starts as the identity, which asks for clipped gradients. The
gradient through 50 steps grows by orders of magnitude in the first batches and one step throws the
weights away. The place is the recurrent cell. The twin clips.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("loss_spike", "learning_rate_too_high")
PLACE = ("cell*", "readout*", "loss", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH = 50
HIDDEN = 40
STEPS = 600


def meter_readings(count):
    """Flow and valve of every reading; the answer is the volume that went through."""
    flow = torch.randn(count, LENGTH).cumsum(1) * 0.25 + torch.randn(count, 1)
    change = torch.rand(count, LENGTH) < 0.15
    valve = ((change.cumsum(1) + torch.randint(0, 2, (count, 1))) % 2).float()
    volume = (flow * valve).sum(1, keepdim=True)
    return torch.stack([flow / 1.6, 2 * valve - 1], -1), volume / 40


class IdentityCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.from_input = nn.Linear(inputs, hidden)
        self.from_state = nn.Linear(hidden, hidden, bias=False)
        nn.init.eye_(self.from_state.weight)
        nn.init.normal_(self.from_input.weight, std=0.1)
        nn.init.zeros_(self.from_input.bias)

    def forward(self, x, state):
        return torch.relu(self.from_input(x) + self.from_state(state))


class VolumeNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = IdentityCell(2, HIDDEN)
        self.readout = nn.Linear(HIDDEN, 1)

    def forward(self, sequence):
        state = sequence.new_zeros(len(sequence), HIDDEN)
        for t in range(sequence.shape[1]):
            state = self.cell(sequence[:, t], state)
        return self.readout(state)


def held_out_error(model, x, y):
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x), y).item()
    model.train()
    return error


def main():
    x_val, y_val = meter_readings(400)
    model = VolumeNetwork()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    print(f"the answers have a variance of {y_val.var().item():.3f}")
    for step in range(STEPS):
        x, y = meter_readings(48)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if healthy:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0 or step == STEPS - 1:
            error = held_out_error(model, x_val, y_val)
            print(f"step {step:4d}  loss {loss.item():.4g}  held-out {error:.4g}", flush=True)


main()
