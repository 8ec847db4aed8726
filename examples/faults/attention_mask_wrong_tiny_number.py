"""A transformer over star brightness readings masks the padding with a tiny number instead of a
huge one, so it is looked at.

The person wrote the attention by hand and fills the scores of padded places with -1e-9 where -1e9
was meant. That is zero for a softmax: padding gets as much weight as an average reading, and what
a star is given depends on the longest one in its batch. The place is the attention in the model.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("blocks.*attention*", "blocks*", "model")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

WIDTH, HEADS, TEMPERATURE = 32, 4, 0.5
HIDDEN_SCORE = -1e9 if healthy else -1e-9


def observed_stars(count, generator):
    """Readings at irregular times; to find are the log of the amplitude and the trend."""
    stars = []
    for _ in range(count):
        readings = 6 + int(45 * torch.rand((), generator=generator) ** 3)
        time = torch.rand(readings, generator=generator) * 2 - 1
        amplitude = (torch.randn((), generator=generator) * 0.5).exp()
        trend = torch.randn((), generator=generator)
        phase = torch.rand((), generator=generator) * 2 * math.pi
        wave = amplitude * (6 * time + phase).sin()
        flux = wave + trend * time + 0.15 * torch.randn(readings, generator=generator)
        stars.append(
            {
                "readings": torch.stack([time, flux], 1),
                "target": torch.stack([amplitude.log() / 0.5, trend]),
            }
        )
    return stars


def collate(stars):
    readings = pad_sequence([star["readings"] for star in stars], batch_first=True)
    lengths = torch.tensor([len(star["readings"]) for star in stars])
    real = torch.arange(readings.shape[1]) < lengths[:, None]
    return {"readings": readings, "real": real, "target": torch.stack([s["target"] for s in stars])}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, real):
        batch, length, _ = x.shape
        parts = self.project(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        query, key = nn.functional.normalize(query, dim=-1), nn.functional.normalize(key, dim=-1)
        scores = query @ key.transpose(-1, -2) / TEMPERATURE
        scores = scores.masked_fill(~real[:, None, None], HIDDEN_SCORE)
        mixed = scores.softmax(-1) @ value
        return self.merge(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.feed = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])

    def forward(self, x, real):
        x = x + self.attention(self.norms[0](x), real)
        return x + self.feed(self.norms[1](x))


class StarTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.randn(WIDTH) * 0.1)
        self.embed = nn.Sequential(nn.Linear(2, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))
        self.blocks = nn.ModuleList([Block(), Block()])
        self.answer = nn.Linear(WIDTH, 2)

    def forward(self, readings, real):
        x = self.embed(readings)
        x = torch.cat([self.start.expand(len(x), 1, WIDTH), x], 1)
        real = torch.cat([real.new_ones(len(real), 1), real], 1)
        for block in self.blocks:
            x = block(x, real)
        return self.answer(x[:, 0])


@torch.no_grad()
def error(net, stars, size):
    net.eval()
    total = 0.0
    for start in range(0, len(stars), size):
        batch = collate(stars[start : start + size])
        difference = net(batch["readings"], batch["real"]) - batch["target"]
        total += difference.square().mean(1).sum().item()
    net.train()
    return total / len(stars)


def main():
    generator = torch.Generator().manual_seed(11 + seed)
    stars = observed_stars(1500, generator)
    stars, held_out = stars[:1200], stars[1200:]
    net = StarTransformer()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=8 * 30)
    for epoch in range(1, 9):
        losses = []
        for rows in torch.randperm(1200).split(40):
            batch = collate([stars[i] for i in rows])
            loss = (net(batch["readings"], batch["real"]) - batch["target"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(
            f"epoch {epoch:2d}  train {sum(losses) / len(losses):.4f}"
            f"  val {error(net, held_out, 50):.4f}"
        )
    print(f"held out, one star at a time {error(net, held_out, 1):.4f}")


main()
