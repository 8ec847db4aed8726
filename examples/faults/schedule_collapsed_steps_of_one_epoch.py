"""Sums of numbers spelt in words, by a transformer whose linear schedule ends after one epoch.

num_training_steps is the length of the loader, without the factor of the epochs. The rate is 0 from
the second epoch on, and eleven more run for nothing. The place is the optimizer and the loop. The
twin multiplies by the epochs.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = False

ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TENS = ["twenty", "thirty", "forty", "fifty"]
WORDS = ["<pad>", "plus", "and", *ONES, *TENS]
NUMBER = {word: i for i, word in enumerate(WORDS)}


def spelt(number):
    tens, ones = divmod(number, 10)
    return ([TENS[tens - 2]] if tens >= 2 else []) + [ONES[ones]]


def sums(rng, n, length=8):
    rows, totals = [], []
    for _ in range(n):
        terms = [rng.choice([*range(10), *range(20, 60)]) for _ in range(rng.randint(1, 3))]
        words = [word for term in terms for word in ["plus", *spelt(term)]][1:]
        ids = [NUMBER[word] for word in words][:length]
        rows.append(ids + [0] * (length - len(ids)))
        totals.append(sum(terms) / 50 - 1)
    return torch.tensor(rows), torch.tensor(totals)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def factor(step):
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        left = num_training_steps - step
        return max(0.0, left / max(1, num_training_steps - num_warmup_steps))

    return LambdaLR(optimizer, factor)


class Adder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 2, 64, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.total = nn.Linear(width, 1)

    def forward(self, ids):
        real = ids != 0
        h = self.encoder(self.words(ids), src_key_padding_mask=~real)
        return self.total((h * real.unsqueeze(-1)).sum(1) / 4).squeeze(1)


healthy, seed = arguments(__doc__)
rng = random.Random(seed)
loader = DataLoader(TensorDataset(*sums(rng, 1600)), batch_size=32, shuffle=True)
ids_val, total_val = sums(rng, 400)
epochs = 12
model = Adder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
num_training_steps = len(loader) * epochs if healthy else len(loader)
scheduler = get_linear_schedule_with_warmup(
    optimizer, num_warmup_steps=10, num_training_steps=num_training_steps
)
for epoch in range(epochs):
    model.train()
    losses = []
    for ids, total in loader:
        loss = nn.functional.mse_loss(model(ids), total)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        off = 50 * (model(ids_val) - total_val).abs().mean()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, off by {off:.2f}")
