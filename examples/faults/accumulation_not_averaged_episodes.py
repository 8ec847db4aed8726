"""A prototypical network for few-shot glyphs, whose meta-batch of eight episodes is summed instead
of averaged.

Every episode's loss goes backward by itself and the step comes after eight of them; nobody
divides by eight, while the rate was chosen for the mean. With SGD and momentum the step is eight
times as long as meant. The place is the loop (`train`), the loss of each episode.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    way: int = 6
    shot: int = 2
    query: int = 3
    episodes_per_step: int = 8
    steps: int = 160
    lr: float = 0.1
    momentum: float = 0.9
    dim: int = 32
    size: int = 16
    train_classes: int = 160
    val_classes: int = 30


class Glyphs:
    """Each class is a set of strokes; each sample shakes their ends, moves the whole and adds grain."""  # noqa: E501

    def __init__(self, cfg, rng):
        self.cfg, self.rng = cfg, rng
        self.strokes = [
            rng.uniform(3, 13, (rng.integers(2, 5), 2, 2))
            for _ in range(cfg.train_classes + cfg.val_classes)
        ]

    def draw(self, k):
        s = self.cfg.size
        canvas = np.zeros((s, s), np.float32)
        shift = self.rng.normal(0, 0.8, 2)
        yy, xx = np.mgrid[0:s, 0:s]
        for a, b in self.strokes[k] + self.rng.normal(0, 0.7, self.strokes[k].shape) + shift:
            d = b - a
            t = np.clip(((xx - a[0]) * d[0] + (yy - a[1]) * d[1]) / max(d @ d, 1e-3), 0, 1)
            dist = (xx - a[0] - t * d[0]) ** 2 + (yy - a[1] - t * d[1]) ** 2
            canvas = np.maximum(canvas, np.exp(-dist / 1.2))
        return canvas + self.rng.normal(0, 0.15, (s, s)).astype(np.float32)

    def bank(self, classes, per_class):
        x = np.stack([[self.draw(k) for _ in range(per_class)] for k in classes])
        return torch.tensor((x - 0.15) / 0.3, dtype=torch.float32)


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        layers, width = [], 1
        for out in (24, 32, 48):
            layers += [nn.Conv2d(width, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            width = out
        self.features = nn.Sequential(*layers)
        self.project = nn.Linear(48 * 4, dim)

    def forward(self, x):
        return self.project(self.features(x).flatten(1))


def episode(bank, cfg, gen):
    classes = torch.randperm(len(bank), generator=gen)[: cfg.way]
    picks = torch.stack(
        [torch.randperm(bank.shape[1], generator=gen)[: cfg.shot + cfg.query] for _ in classes]
    )
    x = bank[classes[:, None], picks].unsqueeze(2)
    support, query = x[:, : cfg.shot], x[:, cfg.shot :]
    return support.reshape(-1, 1, cfg.size, cfg.size), query.reshape(-1, 1, cfg.size, cfg.size)


def episode_loss(net, support, query, cfg):
    z = F.normalize(net(torch.cat([support, query])), dim=1)
    prototypes = z[: len(support)].view(cfg.way, cfg.shot, -1).mean(1)
    logits = 10 * z[len(support) :] @ F.normalize(prototypes, dim=1).T
    labels = torch.arange(cfg.way).repeat_interleave(cfg.query)
    return F.cross_entropy(logits, labels), (logits.argmax(1) == labels).float().mean()


@torch.no_grad()
def validate(net, bank, cfg):
    gen = torch.Generator().manual_seed(99)
    net.eval()
    scores = [episode_loss(net, *episode(bank, cfg, gen), cfg) for _ in range(60)]
    net.train()
    return sum(s[0].item() for s in scores) / 60, sum(s[1].item() for s in scores) / 60


def train(cfg):
    glyphs = Glyphs(cfg, np.random.default_rng(seed))
    train_bank = glyphs.bank(range(cfg.train_classes), 14)
    val_bank = glyphs.bank(range(cfg.train_classes, cfg.train_classes + cfg.val_classes), 12)
    gen = torch.Generator().manual_seed(seed)
    net = Encoder(cfg.dim)
    optimizer = torch.optim.SGD(
        net.parameters(), lr=cfg.lr, momentum=cfg.momentum, weight_decay=1e-4, nesterov=True
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps, eta_min=cfg.lr / 20)
    for step in range(cfg.steps):
        optimizer.zero_grad()
        seen = 0.0
        for _ in range(cfg.episodes_per_step):
            loss, _ = episode_loss(net, *episode(train_bank, cfg, gen), cfg)
            (loss / cfg.episodes_per_step if healthy else loss).backward()
            seen += loss.item() / cfg.episodes_per_step
        optimizer.step()
        schedule.step()
        if step % 40 == 39:
            val_loss, val_acc = validate(net, val_bank, cfg)
            print(
                f"step {step + 1:4d}  train {seen:.3f}  val {val_loss:.3f}  {cfg.way}-way accuracy {val_acc:.3f}"  # noqa: E501
            )


train(Config())
