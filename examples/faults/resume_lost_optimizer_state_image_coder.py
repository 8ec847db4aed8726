"""A SIREN fitted to a picture on a preemptible machine; each requeue restores the network, not
Adam and its schedule.

The job is cut after every 300 steps and goes on from its checkpoint. The checkpoint holds the
optimizer and the scheduler, but `resume` reads back only the weights and the step: moments begin
at zero and the rate is at its peak again, which the last requeue, shortly before the end, cannot
mend. The place is the optimizer (and the loop that resumes).
"""

import io
import math

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


class Sine(nn.Module):
    def __init__(self, i, o, omega=20.0, first=False):
        super().__init__()
        self.omega = omega
        self.linear = nn.Linear(i, o)
        bound = 1 / i if first else math.sqrt(6 / i) / omega
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.omega * self.linear(x))


class Field(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            Sine(2, width, first=True), Sine(width, width), Sine(width, width)
        )
        self.out = nn.Linear(width, 1)
        nn.init.uniform_(self.out.weight, -math.sqrt(6 / width) / 20, math.sqrt(6 / width) / 20)

    def forward(self, xy):
        return self.out(self.body(xy)).squeeze(-1)


def scene(xy):
    """A smooth picture with rings, a slanted grating and two bright spots."""
    x, y = xy[..., 0], xy[..., 1]
    rings = torch.sin(9 * torch.sqrt((x - 0.2) ** 2 + (y + 0.3) ** 2 + 0.01))
    grating = 0.5 * torch.sin(11 * (x + 0.6 * y)) * torch.exp(-2 * (y - 0.3) ** 2)
    spots = torch.exp(-25 * ((x + 0.5) ** 2 + (y - 0.5) ** 2)) + torch.exp(
        -40 * ((x - 0.6) ** 2 + y**2)
    )
    return 0.5 * (rings + grating) + spots


class Job:
    total_steps, slice_steps, batch, peak = 1700, 300, 1024, 1e-3

    def __init__(self, xy, values):
        self.xy, self.values = xy, values
        self.model = Field()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.peak)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, self.total_steps, eta_min=1e-6
        )
        self.step = 0

    def checkpoint(self):
        buffer = io.BytesIO()
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "step": self.step,
            },
            buffer,
        )
        return buffer.getvalue()

    def resume(self, saved):
        state = torch.load(io.BytesIO(saved))
        self.model.load_state_dict(state["model"])
        if healthy:
            self.optimizer.load_state_dict(state["optimizer"])
            self.scheduler.load_state_dict(state["scheduler"])
        self.step = state["step"]

    def work(self):
        """Until the machine is taken away or all steps are done."""
        stop = min(self.step + self.slice_steps, self.total_steps)
        while self.step < stop:
            rows = torch.randint(len(self.xy), (self.batch,))
            loss = (self.model(self.xy[rows]) - self.values[rows]).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.step += 1
        return loss.item()


@torch.no_grad()
def psnr(model, xy):
    truth = scene(xy)
    error = (model(xy) - truth).pow(2).mean()
    return 10 * math.log10((truth.max() - truth.min()).item() ** 2 / error.item())


side = torch.linspace(-1, 1, 96)
grid = torch.stack(torch.meshgrid(side, side, indexing="ij"), -1).view(-1, 2)
pixels = scene(grid) + 0.02 * torch.randn(len(grid))
between = torch.rand(4000, 2) * 2 - 1  # points off the grid

saved, requeues = None, 0
while True:
    job = Job(grid, pixels)
    if saved is not None:
        job.resume(saved)
    last = job.work()
    saved = job.checkpoint()
    print(
        f"slice {requeues}: step {job.step}, loss {last:.5f}, lr {job.scheduler.get_last_lr()[0]:.2e}, val PSNR {psnr(job.model, between):.2f} dB"  # noqa: E501
    )
    requeues += 1
    if job.step >= Job.total_steps:
        break
