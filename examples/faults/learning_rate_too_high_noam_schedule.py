"""A transformer turns spelling into sounds; its rate schedule lacks the factor for the width.

The person wrote the schedule of the transformer paper from memory, min(step^-0.5, step *
warmup^-1.5), and left out the width^-0.5 before it, so that the rate rises to 0.045 and is still
0.04 at the end, seven times what was meant. The place is the learning rate (NoamOptimizer.rate).
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("loss_spike", "bad_optimizer_settings")
PLACE = ("learning_rate", "optimizer")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

LETTERS = "#abcdefghijklmnopqrstuvwxyz"
SOUNDS = ["#", "-", *"aeiou", "A", "E", "I", "O", "U", *"bdfghjklmnprstvwz", "S", "T", "C", "x"]
LETTER = {c: i for i, c in enumerate(LETTERS)}
SOUND = {c: i for i, c in enumerate(SOUNDS)}
LENGTH = 12


def pronounce(word: str) -> list[str]:
    """One sound for each letter, '-' for a silent one; the rules look to both sides."""
    sounds = []
    for i, c in enumerate(word):
        before = word[i - 1] if i else "#"
        after = word[i + 1] if i + 1 < len(word) else "#"
        rest = word[i + 1 :]
        magic_e = len(rest) >= 2 and rest[-1] == "e" and rest[-2] not in "aeiou" and len(rest) == 2
        if c == "e" and after == "#" and i > 1:
            sounds.append("-")
        elif c in "aeiou":
            sounds.append(c.upper() if magic_e else ("-" if before == c else c))
        elif c == "c":
            sounds.append("C" if after == "h" else ("s" if after in "eiy" else "k"))
        elif c == "g":
            sounds.append("j" if after in "eiy" else "g")
        elif c == "h":
            sounds.append("-" if before in "cst" else "h")
        elif c in "st" and after == "h":
            sounds.append(c.upper())
        elif c == "s" and before in "aeiou" and after in "aeiou":
            sounds.append("z")
        elif (c == "k" and after == "n") or c == before:
            sounds.append("-")
        else:
            sounds.append({"q": "k", "x": "x", "y": "i"}.get(c, c))
    return sounds


def make_words(n: int, r: random.Random):
    starts = [
        "c",
        "ch",
        "g",
        "s",
        "sh",
        "t",
        "th",
        "kn",
        "b",
        "d",
        "f",
        "l",
        "m",
        "n",
        "p",
        "r",
        "w",
    ]
    ends = ["", "t", "ss", "ce", "ge", "te", "ne", "l", "sh", "th", "se", "k"]
    x = torch.zeros(n, LENGTH, dtype=torch.long)
    y = torch.zeros(n, LENGTH, dtype=torch.long)
    for row in range(n):
        word = "".join(r.choice(starts) + r.choice("aeiou") for _ in range(r.randint(1, 3)))
        word = (word + r.choice(ends))[:LENGTH]
        x[row, : len(word)] = torch.tensor([LETTER[c] for c in word])
        y[row, : len(word)] = torch.tensor([SOUND[c] for c in pronounce(word)])
    return x, y


class NoamOptimizer:
    def __init__(self, parameters, width: int, factor: float, warmup: int):
        self.optimizer = torch.optim.Adam(parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9)
        self.width, self.factor, self.warmup = width, factor, warmup
        self.steps = 0

    def rate(self) -> float:
        rising, falling = self.steps * self.warmup**-1.5, self.steps**-0.5
        scale = self.width**-0.5 if healthy else 1.0
        return self.factor * scale * min(rising, falling)

    def step(self):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.optimizer.zero_grad()


class Speller(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.05, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.sounds = nn.Linear(width, len(SOUNDS))

    def forward(self, x):
        states = self.encoder(self.letters(x) + self.places, src_key_padding_mask=x == 0)
        return self.sounds(states)


def main():
    config = {"width": 48, "factor": 1.0, "warmup": 500, "batch": 64}
    r = random.Random(40 + seed)
    x, y = make_words(2400, r)
    x_val, y_val = make_words(400, r)
    model = Speller(config["width"])
    optimizer = NoamOptimizer(
        model.parameters(), config["width"], config["factor"], config["warmup"]
    )
    step = 0
    for epoch in range(18):
        model.train()
        for rows in torch.randperm(len(x)).split(config["batch"]):
            scores = model(x[rows])
            loss = F.cross_entropy(scores.transpose(1, 2), y[rows], ignore_index=0)
            loss.backward()
            optimizer.step()
            step += 1
        if epoch % 3 == 0 or epoch == 17:
            model.eval()
            with torch.no_grad():
                scores = model(x_val)
                val_loss = F.cross_entropy(scores.transpose(1, 2), y_val, ignore_index=0)
                right = (scores.argmax(-1) == y_val) | (y_val == 0)
            print(
                f"step {step:4d}  lr {optimizer.rate():.5f}  loss {loss.item():.3f}  val "
                f"{val_loss.item():.3f}  whole words {right.all(1).float().mean().item():.3f}"
            )


if __name__ == "__main__":
    main()
