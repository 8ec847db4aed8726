"""A model of a motor's current on a preemptible machine; after each resumption the optimizer
starts without its state.

save() writes the key "optim", load() looks for "optimizer" and silently goes on without it. The
job is preempted every 20 steps, so that Adam's moments start at zero each time, and its first
steps are as large as the rate for each weight. The place is the optimizer (loop).
"""

import os
import tempfile

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

TOTAL_STEPS, QUANTUM = 600, 20
CKPT = os.path.join(tempfile.mkdtemp(), "last.pt")


def motor(n, length=40):
    """Voltage commands and load -> current and speed of a DC motor with a saturating coil."""
    volts = torch.repeat_interleave(torch.randn(n, length // 8), 8, 1)
    load = 0.5 * torch.cumsum(0.2 * torch.randn(n, length), 1)
    i, w, out = torch.zeros(n), torch.zeros(n), []
    for t in range(length):
        induct = 0.3 + 0.4 / (1 + i**2)
        i = i + 0.12 * (volts[:, t] - 0.8 * i - 0.6 * w) / induct
        w = w + 0.12 * (1.2 * torch.tanh(i) - load[:, t] - 0.3 * w.abs() * w)
        out.append(torch.stack([i, w], -1))
    y = torch.stack(out, 1)
    return torch.stack([volts, load], -1), (y + 0.02 * torch.randn_like(y)) / 0.8


class MotorNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.readout = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, u):
        return self.readout(self.gru(u)[0])


class Job:
    """One life of the process between two preemptions."""

    def __init__(self):
        self.model = MotorNet()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=6e-3)
        self.step = 0
        if os.path.exists(CKPT):
            self.load()

    def save(self):
        state = {
            "model": self.model.state_dict(),
            "optim": self.optimizer.state_dict(),
            "step": self.step,
        }
        torch.save(state, CKPT + ".tmp")
        os.replace(CKPT + ".tmp", CKPT)

    def load(self):
        state = torch.load(CKPT)
        self.model.load_state_dict(state["model"])
        saved = state.get("optim" if healthy else "optimizer")
        if saved is not None:
            self.optimizer.load_state_dict(saved)
        self.step = state["step"]

    def run(self, data):
        u, y = data
        losses = []
        while self.step < TOTAL_STEPS and len(losses) < QUANTUM:
            for group in self.optimizer.param_groups:
                group["lr"] = 6e-3 * (1 - 0.75 * self.step / TOTAL_STEPS)
            rows = torch.randint(0, len(u), (32,))
            loss = (self.model(u[rows]) - y[rows]).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.step += 1
            losses.append(loss.item())
        self.save()
        return losses


def validate(model, data):
    model.eval()
    with torch.no_grad():
        return (model(data[0]) - data[1]).pow(2).mean().item()


train, val = motor(2000), motor(300)
done, curve = 0, []
while done < TOTAL_STEPS:
    job = Job()
    losses = job.run(train)
    done = job.step
    curve.append(validate(job.model, val))
    print(
        f"preempted at {done}: first {losses[0]:.4f} peak {max(losses[:10]):.4f} last {losses[-1]:.4f} val {curve[-1]:.5f}"  # noqa: E501
    )
print(f"mean of the last 6 validations {sum(curve[-6:]) / 6:.5f}")
