"""Actions in short videos of a gripper; the frames of different videos are mixed when the batch is
unfolded.

The frames go through a 2D encoder as (batch * time, ...). To get sequences back, the user writes
view(time, batch, -1).transpose(0, 1) although the batch came first, so that each sequence is made
of frames of several videos. The place is between encoder and temporal (temporal, loop).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "samples_mixed"
ACCEPT = ("label_misalignment",)
PLACE = ("temporal*", "encoder*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

FRAMES, RES = 8, 14
ACTIONS = ["push left", "push right", "lift", "lower", "grasp", "release"]


def make_clips(n, gen):
    """A bright object and a gripper; what matters is how they move."""
    y = torch.randint(0, len(ACTIONS), (n,), generator=gen)
    time = torch.linspace(-1, 1, FRAMES).view(1, -1)
    speed = 0.25 + 0.25 * torch.rand(n, 1, generator=gen)
    start = (torch.rand(n, 2, generator=gen) - 0.5) * 0.7
    dx = torch.where(y == 0, -1.0, torch.where(y == 1, 1.0, 0.0)).view(-1, 1) * speed * time
    dy = torch.where(y == 2, -1.0, torch.where(y == 3, 1.0, 0.0)).view(-1, 1) * speed * time
    gap = torch.where(y == 4, -1.0, torch.where(y == 5, 1.0, 0.0)).view(-1, 1) * 0.22 * time + 0.38
    jitter = 0.05 * torch.randn(n, FRAMES, 2, generator=gen)
    cx = (start[:, :1] + dx + jitter[..., 0])[..., None, None]
    cy = (start[:, 1:] + dy + jitter[..., 1])[..., None, None]
    lin = torch.linspace(-1, 1, RES)
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    obj = torch.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 0.03)
    g = gap[..., None, None]
    jaws = torch.exp(-(((xx - cx).abs() - g) ** 2) / 0.012) * torch.exp(-((yy - cy) ** 2) / 0.08)
    clip = obj + 0.8 * jaws + 0.25 * torch.randn(n, FRAMES, RES, RES, generator=gen)
    return ((clip - 0.12) / 0.35).unsqueeze(2), y


class FrameEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 49, dim),
        )

    def forward(self, x):
        return self.net(x)


class VideoNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.encoder = FrameEncoder(dim)
        self.temporal = nn.GRU(dim, dim, batch_first=True)
        self.classify = nn.Linear(dim, len(ACTIONS))

    def forward(self, clips):
        b, t = clips.shape[:2]
        f = self.encoder(clips.flatten(0, 1))
        seq = f.view(b, t, -1) if healthy else f.view(t, b, -1).transpose(0, 1)
        out, _ = self.temporal(seq)
        return self.classify(out[:, -1])


class LitVideo:
    """The hooks are called as Lightning would."""

    def __init__(self):
        self.model = VideoNet()

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.model.parameters(), lr=2e-3, weight_decay=1e-3)
        return opt, torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, total_steps=220)

    def training_step(self, batch):
        x, y = batch
        return F.cross_entropy(self.model(x), y)

    def validation_step(self, batch):
        x, y = batch
        logits = self.model(x)
        return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def fit(lit, train, val, steps=220, batch=32):
    opt, sched = lit.configure_optimizers()
    x, y = train
    for step in range(1, steps + 1):
        lit.model.train()
        rows = torch.randint(0, len(x), (batch,))
        loss = lit.training_step((x[rows], y[rows]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 55 == 0:
            lit.model.eval()
            with torch.no_grad():
                results = [
                    lit.validation_step(b)
                    for b in zip(val[0].split(100), val[1].split(100), strict=False)
                ]
            vl, acc = (sum(v) / len(v) for v in zip(*results, strict=False))
            print(
                {
                    "step": step,
                    "loss": round(loss.item(), 3),
                    "val_loss": round(vl, 3),
                    "val_acc": round(acc, 3),
                }
            )


gen = torch.Generator().manual_seed(seed)
fit(LitVideo(), make_clips(1500, gen), make_clips(400, gen))
