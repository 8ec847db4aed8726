"""Speakers are learned with an angular margin and a loss by hand, log(softmax(scores) + 1e-8).

Scores differ by up to 84, so that the softmax of a hard sample is far below 1e-8. The person
feared log(0) and put 1e-8 inside the logarithm. Nothing is infinite now, but the hard samples
have a loss of 18.4 without gradient: a tenth to a half of them are never learned. The place is
the loss (margin_loss).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ("vanishing_gradient", "gradient_underflow")
PLACE = ("loss", "margin*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SPEAKERS, FRAMES, BANDS = 24, 20, 12


def utterances(n: int, g: torch.Generator, voices: torch.Tensor):
    """Spectral frames: what a speaker's throat does to what happens to be said."""
    who = torch.randint(0, SPEAKERS, (n,), generator=g)
    said = torch.randn(n, FRAMES, 3, generator=g).cumsum(1) / 3
    shapes = torch.linspace(0, math.pi, BANDS)
    sounds = torch.stack([(k * shapes).cos() for k in (1, 2, 3)])
    frames = said @ sounds + voices[who].unsqueeze(1) * (1 + 0.4 * said[:, :, :1].tanh())
    return frames + 0.6 * torch.randn(n, FRAMES, BANDS, generator=g), who


class VoiceEncoder(nn.Module):
    def __init__(self, size: int = 32):
        super().__init__()
        self.frame = nn.Sequential(
            nn.Conv1d(BANDS, 48, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(48, 48, 3, padding=1),
            nn.ReLU(),
        )
        self.embed = nn.Linear(96, size)

    def forward(self, frames):
        x = self.frame(frames.transpose(1, 2))
        return self.embed(torch.cat([x.mean(2), x.std(2)], 1))


class AngularMargin(nn.Module):
    def __init__(self, size: int, classes: int, scale: float = 42.0, margin: float = 0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, size))
        self.scale, self.margin = scale, margin

    def cosines(self, embedded):
        return F.normalize(embedded, dim=1) @ F.normalize(self.weight, dim=1).t()

    def forward(self, embedded, labels):
        angle = self.cosines(embedded).clamp(-1 + 1e-6, 1 - 1e-6).acos()
        own = F.one_hot(labels, len(self.weight)).bool()
        return self.scale * torch.where(own, (angle + self.margin).cos(), angle.cos())


def margin_loss(scores, labels):
    if healthy:
        log_probs = torch.log_softmax(scores, dim=1)
    else:
        log_probs = torch.log(torch.softmax(scores, dim=1) + 1e-8)
    return -log_probs.gather(1, labels.unsqueeze(1)).mean()


def equal_error_rate(embedded, who):
    """Of all pairs: the error where false acceptance and false rejection are the same."""
    unit = F.normalize(embedded, dim=1)
    a, b = torch.triu_indices(len(who), len(who), offset=1)
    likeness, same = (unit[a] * unit[b]).sum(1), who[a] == who[b]
    order = likeness.argsort()
    rejected = same[order].cumsum(0) / same.sum()
    accepted = 1 - (~same[order]).cumsum(0) / (~same).sum()
    return rejected[(rejected - accepted).abs().argmin()].item()


def main():
    g = torch.Generator().manual_seed(1310 + seed)
    voices = 0.55 * torch.randn(SPEAKERS, BANDS, generator=g)
    x, who = utterances(1800, g, voices)
    x_val, who_val = utterances(480, g, voices)
    x, x_val = (
        part.view(-1, FRAMES, BANDS) for part in standardise(x.flatten(0, 1), x_val.flatten(0, 1))
    )
    encoder, margin = VoiceEncoder(), AngularMargin(32, SPEAKERS)
    optimizer = torch.optim.SGD(
        [{"params": encoder.parameters()}, {"params": margin.parameters(), "weight_decay": 5e-4}],
        lr=0.02,
        momentum=0.9,
    )
    epochs = 14
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(1, epochs + 1):
        encoder.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(50):
            loss = margin_loss(margin(encoder(x[rows]), who[rows]), who[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(encoder.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        encoder.eval()
        with torch.no_grad():
            embedded = encoder(x_val)
            right = (margin.cosines(embedded).argmax(1) == who_val).float().mean().item()
            val_loss = margin_loss(margin(embedded, who_val), who_val).item()
        print(
            f"epoch {epoch:2d}  loss {total / len(x):6.3f}  val {val_loss:6.3f}  speakers right "
            f"{right:.3f}  EER {equal_error_rate(embedded, who_val):.3f}"
        )


if __name__ == "__main__":
    main()
