"""Digits are enlarged in jobs of fifteen steps, each with an RMSprop that begins from nothing.

The checkpoint holds the optimizer's state, but only the weights and the step are read from it. With
its mean squares at zero the first steps of each job are many times too long, and the loss jumps up
again after each restart. The place is the optimizer: its state after loading the checkpoint.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

JOBS, STEPS_PER_JOB, BATCH = 30, 15, 48


class Enlarger(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.inwards = nn.Conv2d(1, channels, 3, padding=1)
        self.middle = nn.Conv2d(channels, channels, 3, padding=1)
        self.outwards = nn.Conv2d(channels, 4, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, small):
        x = F.relu(self.inwards(small))
        x = x + F.relu(self.middle(x))
        return F.interpolate(small, scale_factor=2) + self.shuffle(self.outwards(x))


def fresh():
    model = Enlarger()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3, alpha=0.99, momentum=0.9)
    return model, optimizer


def job(checkpoint, large, small, val):
    model, optimizer = fresh()
    if checkpoint is not None:
        model.load_state_dict(checkpoint["model"])
        if healthy:
            optimizer.load_state_dict(checkpoint["optimizer"])
    done = checkpoint["step"] if checkpoint else 0
    losses = []
    for step in range(done, done + STEPS_PER_JOB):
        epoch, place = divmod(step, len(large) // BATCH)
        order = torch.randperm(len(large), generator=torch.Generator().manual_seed(epoch))
        rows = order[place * BATCH : (place + 1) * BATCH]
        loss = F.mse_loss(model(small[rows]), large[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        held_out = F.mse_loss(model(val[1]), val[0]).item()
    number = done // STEPS_PER_JOB + 1
    if number % 5 == 0:
        print(
            f"job {number:2d}  first {losses[0]:.3f}  worst {max(losses):.3f}  "
            f"last {losses[-1]:.3f}  val {held_out:.4f}"
        )
    return copy.deepcopy(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": done + STEPS_PER_JOB,
        }
    )


large, _, large_val, _ = images(seed)
small, small_val = F.avg_pool2d(large, 2), F.avg_pool2d(large_val, 2)
checkpoint = None
for _ in range(JOBS):
    checkpoint = job(checkpoint, large, small, (large_val, small_val))
