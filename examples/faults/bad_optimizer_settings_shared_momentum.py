"""A mean-teacher training whose one "momentum" of 0.996 goes to the teacher and to SGD as well.

The person's config has a single entry for momentum, meant for the slow copy of the weights. The
function that builds the optimizer looks up the same key, so SGD sums up the gradients of some 250
steps and swings far beyond its aim. The place is the optimizer.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "lr": 0.06,
    "momentum": 0.996,
    "weight_decay": 1e-4,
    "labelled_batch": 16,
    "unlabelled_batch": 48,
    "consistency": 2.0,
    "ramp_steps": 150,
    "steps": 500,
}
if healthy:
    CONFIG["sgd_momentum"] = 0.9
GESTURES, CHANNELS, LENGTH = 8, 3, 32


def gestures(n, generator):
    """Three-axis strokes: each gesture has its own frequencies and phases on the axes."""
    y = torch.randint(0, GESTURES, (n,), generator=generator)
    plan = torch.Generator().manual_seed(21)
    speeds = 1 + 3 * torch.rand(GESTURES, CHANNELS, 1, generator=plan)
    phases = 6.28 * torch.rand(GESTURES, CHANNELS, 1, generator=plan)
    t = torch.linspace(0, 3.14, LENGTH)
    pace = 0.85 + 0.3 * torch.rand(n, 1, 1, generator=generator)
    start = 0.8 * torch.randn(n, 1, 1, generator=generator)
    size = 0.6 + 0.8 * torch.rand(n, CHANNELS, 1, generator=generator)
    x = size * torch.sin(speeds[y] * pace * t * 2 + phases[y] + start)
    return (x + 0.9 * torch.randn(n, CHANNELS, LENGTH, generator=generator)) / 1.15, y


def jitter(x):
    scale = 1 + 0.1 * torch.randn(len(x), CHANNELS, 1)
    return x * scale + 0.15 * torch.randn_like(x)


def gesture_net(width=32):
    return nn.Sequential(
        nn.Conv1d(CHANNELS, width, 5, padding=2),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(width, width, 5, padding=2),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(4),
        nn.Flatten(),
        nn.Linear(4 * width, GESTURES),
    )


def make_optimizer(model, config):
    return torch.optim.SGD(
        model.parameters(),
        lr=config["lr"],
        momentum=config.get("sgd_momentum", config["momentum"]),
        weight_decay=config["weight_decay"],
    )


class MeanTeacher:
    def __init__(self, config):
        self.config = config
        self.student = gesture_net()
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.optimizer = make_optimizer(self.student, config)
        self.step = 0

    def update_teacher(self):
        keep = min(self.config["momentum"], 1 - 1 / (self.step + 1))
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            slow.lerp_(fast.detach(), 1 - keep)
        for slow, fast in zip(self.teacher.buffers(), self.student.buffers(), strict=True):
            slow.copy_(fast)

    def train_step(self, x, y, unlabelled):
        self.student.train()
        self.teacher.train()
        scores = self.student(jitter(torch.cat([x, unlabelled])))
        with torch.no_grad():
            aims = self.teacher(jitter(unlabelled)).softmax(1)
        supervised = F.cross_entropy(scores[: len(x)], y)
        apart = (scores[len(x) :].softmax(1) - aims).square().sum(1).mean()
        weight = self.config["consistency"] * min(1.0, self.step / self.config["ramp_steps"])
        self.optimizer.zero_grad()
        (supervised + weight * apart).backward()
        self.optimizer.step()
        self.step += 1
        self.update_teacher()
        return supervised.item(), apart.item()

    @torch.no_grad()
    def accuracy(self, net, x, y):
        net.eval()
        return (net(x).argmax(1) == y).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(190 + seed)
    x, y = gestures(600, generator)
    unlabelled, _ = gestures(2000, generator)
    x_val, y_val = gestures(600, generator)
    run = MeanTeacher(CONFIG)
    sums = [0.0, 0.0]
    for step in range(1, CONFIG["steps"] + 1):
        rows = torch.randperm(len(x))[: CONFIG["labelled_batch"]]
        more = torch.randperm(len(unlabelled))[: CONFIG["unlabelled_batch"]]
        supervised, apart = run.train_step(x[rows], y[rows], unlabelled[more])
        sums = [sums[0] + supervised / 50, sums[1] + apart / 50]
        if step % 50 == 0:
            print(
                f"step {step:3d}  supervised {sums[0]:.4f}  consistency {sums[1]:.4f}  "
                f"student {run.accuracy(run.student, x_val, y_val):.4f}  "
                f"teacher {run.accuracy(run.teacher, x_val, y_val):.4f}"
            )
            sums = [0.0, 0.0]


if __name__ == "__main__":
    main()
