"""A GRU reads numbers spelled in words and writes their digits; its rate decays far too fast.

The person has a helper of the kind found in old ImageNet scripts, called before each epoch. It
multiplies the rate that is in the optimizer by decay ** epoch, while the formula is meant for the
first rate: the decays pile up. The place is the optimizer, its learning rate.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("learning_rate", "optimizer")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

RATE, DECAY, EPOCHS, BATCH = 4e-3, 0.9, 22, 64
ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORDS = {w: i + 1 for i, w in enumerate([*ONES, *TENS, "hundred", "thousand", "and"])}


def below_hundred(n):
    if n < 20:
        return [ONES[n]]
    return [TENS[n // 10 - 2]] + ([ONES[n % 10]] if n % 10 else [])


def spell(n):
    said = []
    if n >= 1000:
        said += [*below_hundred(n // 1000), "thousand"]
        n %= 1000
    if n >= 100:
        said += [ONES[n // 100], "hundred"] + (["and"] if n % 100 else [])
        n %= 100
    return said + (below_hundred(n) if n or not said else [])


def collate(numbers):
    rows = [torch.tensor([WORDS[w] for w in spell(n)]) for n in numbers]
    lengths = torch.tensor([len(row) for row in rows])
    digits = torch.tensor([[int(c) for c in f"{n:05d}"] for n in numbers])
    return pad_sequence(rows, batch_first=True), lengths, digits


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS) + 1, 32, padding_idx=0)
        self.gru = nn.GRU(32, width, batch_first=True)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(
            self.embed(words), lengths, batch_first=True, enforce_sorted=False
        )
        return self.gru(packed)[1]


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.gru = nn.GRU(16, width, batch_first=True)
        self.out = nn.Linear(width, 10)

    def forward(self, state, before):
        h, state = self.gru(self.embed(before), state)
        return self.out(h), state


def adjust_learning_rate(optimizers, epoch):
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            start = RATE if healthy else group["lr"]
            group["lr"] = start * DECAY**epoch


def whole_numbers_right(encoder, decoder, numbers):
    with torch.no_grad():
        words, lengths, digits = collate(numbers)
        state = encoder(words, lengths)
        last = torch.full((len(numbers), 1), 10)
        written = []
        for _ in range(5):
            logits, state = decoder(state, last)
            last = logits.argmax(-1)
            written.append(last)
        return (torch.cat(written, 1) == digits).all(1).float().mean().item()


def main():
    rng = random.Random(seed)
    numbers = rng.sample(range(1, 100_000), 2900)
    train, val = numbers[:2500], numbers[2500:]
    encoder, decoder = Encoder(96), Decoder(96)
    optimizers = [torch.optim.Adam(part.parameters(), lr=RATE) for part in (encoder, decoder)]
    for epoch in range(EPOCHS):
        adjust_learning_rate(optimizers, epoch)
        rng.shuffle(train)
        total = 0.0
        for start in range(0, len(train), BATCH):
            words, lengths, digits = collate(train[start : start + BATCH])
            before = torch.cat([torch.full((len(digits), 1), 10), digits[:, :-1]], 1)
            logits, _ = decoder(encoder(words, lengths), before)
            loss = F.cross_entropy(logits.flatten(0, 1), digits.flatten())
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for part in (encoder, decoder):
                nn.utils.clip_grad_norm_(part.parameters(), 5.0)
            for optimizer in optimizers:
                optimizer.step()
            total += loss.item() * len(digits)
        if epoch % 3 == 0 or epoch == EPOCHS - 1:
            right = whole_numbers_right(encoder, decoder, val)
            print(f"[{epoch:02d}] loss {total / len(train):.4f}  whole numbers right {right:.3f}")


main()
