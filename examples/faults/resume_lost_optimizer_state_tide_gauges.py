"""A GRU that forecasts a tide gauge in a queue of short jobs, each of which resumes from the last
checkpoint but starts Adam anew.

The checkpoint holds the optimizer's state, yet resuming reads only the weights and the step. Adam's
moments start from zero at each of the 14 jobs, its first steps are as large as the learning rate
allows whatever the gradient, and the loss jumps. The place is the optimizer, where a job resumes.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

HOURS_SEEN, HORIZON, STEPS_PER_JOB, JOBS = 26, 6, 30, 14


def gauge(hours):
    t = torch.arange(hours).float()
    tide = (
        1.2 * torch.sin(t * 0.5059) + 0.5 * torch.sin(t * 0.5236 + 1) + 0.3 * torch.sin(t * 0.2625)
    )
    surge, level = torch.zeros(hours), 0.0
    for i in range(1, hours):
        level = 0.97 * level + 0.04 * torch.randn(()).item()
        surge[i] = level
    return tide + surge + 0.03 * torch.randn(hours)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.head = nn.Linear(32, HORIZON)

    def forward(self, level):
        states, _ = self.gru(level.unsqueeze(-1))
        return level[:, -1:] + self.head(states[:, -1])


def run_job(checkpoint, train, generator):
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    step = 0
    if checkpoint is not None:
        model.load_state_dict(checkpoint["model"])
        step = checkpoint["step"]
        if healthy:
            optimizer.load_state_dict(checkpoint["optimizer"])
    losses = []
    for _ in range(STEPS_PER_JOB):
        rows = torch.randint(len(train), (64,), generator=generator)
        window = train[rows]
        forecast = model(window[:, :HOURS_SEEN])
        loss = nn.functional.mse_loss(forecast, window[:, HOURS_SEEN:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        losses.append(loss.item())
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    return copy.deepcopy(state), losses


def main():
    series = gauge(2600)
    cut = 2000
    mean, std = series[:cut].mean(), series[:cut].std()
    series = (series - mean) / std
    train = series[:cut].unfold(0, HOURS_SEEN + HORIZON, 1)
    val = series[cut:].unfold(0, HOURS_SEEN + HORIZON, 1)
    generator = torch.Generator().manual_seed(seed)
    checkpoint = None
    for job in range(JOBS):
        checkpoint, losses = run_job(checkpoint, train, generator)
        model = Forecaster()
        model.load_state_dict(checkpoint["model"])
        model.eval()
        with torch.no_grad():
            error = (model(val[:, :HOURS_SEEN]) - val[:, HOURS_SEEN:]).pow(2).mean()
        print(
            f"job {job:2d} step {checkpoint['step']:3d} first {losses[0]:.4f} "
            f"largest {max(losses[:8]):.4f} last {losses[-1]:.4f} validation {error:.4f}"
        )


main()
