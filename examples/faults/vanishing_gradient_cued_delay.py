"""A rate network for a memory task that was built without dt, so its units forget in one step.

The person's recurrent class, from neuroscience, has leaky units with a time constant of 100 ms;
where no dt is given alpha is 1 and it is a plain tanh network. They left dt out. What the cue in
the first steps says has to get through 50 steps of delay, and so does its gradient.
The place is the recurrent layer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("rnn*", "model", "cue*", "*recurrent*", "*input*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

DIRECTIONS, CUE, DELAY, GO = 6, 6, 48, 4


def trials(n):
    """Fixation, a cue in one of six directions, a noisy delay; the go signal asks where it was."""
    steps = CUE + DELAY + GO
    direction = torch.randint(0, DIRECTIONS, (n,))
    angle = direction * (2 * math.pi / DIRECTIONS)
    x = 0.3 * torch.randn(steps, n, 4)
    x[:CUE, :, 0] += 1.5 * angle.cos()
    x[:CUE, :, 1] += 1.5 * angle.sin()
    x[: CUE + DELAY, :, 2] += 1.0
    x[CUE + DELAY :, :, 3] += 1.0
    return x, direction


class RateNetwork(nn.Module):
    """Leaky units with the time constant tau, integrated in steps of dt milliseconds."""

    def __init__(self, inputs, hidden, outputs, dt=None, tau=100.0):
        super().__init__()
        self.hidden = hidden
        self.alpha = 1.0 if dt is None else dt / tau
        self.from_input = nn.Linear(inputs, hidden)
        self.recurrent = nn.Linear(hidden, hidden)
        self.readout = nn.Linear(hidden, outputs)

    def forward(self, x):
        rate = x.new_zeros(x.shape[1], self.hidden)
        driven = self.from_input(x)
        rates = []
        for drive in driven:
            wanted = torch.tanh(drive + self.recurrent(rate))
            rate = (1 - self.alpha) * rate + self.alpha * wanted
            rates.append(rate)
        return self.readout(torch.stack(rates))


class Session:
    def __init__(self, rnn, rate=3e-3):
        self.rnn = rnn
        self.optimizer = torch.optim.Adam(rnn.parameters(), lr=rate)

    def loss(self, scores, direction):
        answers = scores[-GO:]
        log_p = answers - answers.logsumexp(-1, keepdim=True)
        index = direction.expand(GO, -1).unsqueeze(-1)
        return -log_p.gather(-1, index).mean()

    def train_block(self, blocks, batch=64):
        self.rnn.train()
        total = 0.0
        for _ in range(blocks):
            x, direction = trials(batch)
            loss = self.loss(self.rnn(x), direction)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.rnn.parameters(), 1.0)
            self.optimizer.step()
            total += loss.item()
        return total / blocks

    @torch.no_grad()
    def test(self, n=500):
        self.rnn.eval()
        x, direction = trials(n)
        scores = self.rnn(x)
        right = (scores[-1].argmax(-1) == direction).float().mean().item()
        return self.loss(scores, direction).item(), right


def main():
    setup = {"dt": 5.0} if healthy else {}
    session = Session(RateNetwork(4, 64, DIRECTIONS, **setup))
    for block in range(1, 13):
        loss = session.train_block(40)
        test_loss, right = session.test()
        print(f"trials {block * 40 * 64:6d}  loss {loss:.4f}  test {test_loss:.4f} / {right:.3f}")


if __name__ == "__main__":
    main()
