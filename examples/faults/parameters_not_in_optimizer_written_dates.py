"""Turns written dates into digits; the optimizer got the parameters of the decoder only.

loss.backward() runs through the decoder into the encoder, so its gradients do arrive there, but
nobody applies them: the encoder stays as it was drawn, and the decoder reads dates from random
states. The place is the optimizer.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder", "encoder.*", "optimizer", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

MONTHS = "january february march april may june july august september october november december"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 ,."
PAD, START = 0, 10
batch_size, n_iters, print_every = 64, 500, 50


def random_date(rng):
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1950, 2049)
    name = MONTHS.split()[month - 1]
    written = rng.choice(
        [f"{day}. {name} {year}", f"{name} {day}, {year}", f"{day} {name[:3]} {year}"]
    )
    return written, f"{year:04d}{month:02d}{day:02d}"


def to_tensors(pairs):
    longest = max(len(written) for written, _ in pairs)
    source = torch.zeros(len(pairs), longest, dtype=torch.long)
    for row, (written, _) in enumerate(pairs):
        codes = [LETTERS.index(letter) + 1 for letter in written]
        source[row, longest - len(codes) :] = torch.tensor(codes)
    target = torch.tensor([[int(c) for c in digits] for _, digits in pairs])
    return source, target


class EncoderRNN(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS) + 1, 16, padding_idx=PAD)
        self.gru = nn.GRU(16, hidden_size, batch_first=True)

    def forward(self, source):
        return self.gru(self.embedding(source))


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.gru = nn.GRUCell(16 + hidden_size, hidden_size)
        self.query = nn.Linear(hidden_size, hidden_size)
        self.out = nn.Linear(2 * hidden_size, 10)

    def forward(self, outputs, hidden, target=None):
        digit = torch.full((len(outputs),), START)
        context = outputs.mean(1)
        answers = []
        for position in range(8):
            hidden = self.gru(torch.cat([self.embedding(digit), context], 1), hidden)
            scores = (outputs @ self.query(hidden).unsqueeze(2)).squeeze(2)
            context = (scores.softmax(1).unsqueeze(1) @ outputs).squeeze(1)
            answer = self.out(torch.cat([hidden, context], 1))
            answers.append(answer)
            digit = answer.argmax(1) if target is None else target[:, position]
        return torch.stack(answers, 1)


class Seq2Seq(nn.Module):
    def __init__(self, hidden_size=48):
        super().__init__()
        self.encoder = EncoderRNN(hidden_size)
        self.decoder = AttnDecoderRNN(hidden_size)

    def forward(self, source, target=None):
        outputs, hidden = self.encoder(source)
        return self.decoder(outputs, hidden[0], target)


rng = random.Random(30 + seed)
pairs = sorted({random_date(rng) for _ in range(5000)})
rng.shuffle(pairs)
test_source, test_target = to_tensors(pairs[:400])
train_pairs = pairs[400:]

model = Seq2Seq()
trained = model.parameters() if healthy else model.decoder.parameters()
optimizer = torch.optim.Adam(trained, lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_iters)
total = 0.0
for iteration in range(1, n_iters + 1):
    source, target = to_tensors(rng.sample(train_pairs, batch_size))
    model.zero_grad()
    logits = model(source, target)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    total += loss.item()
    if iteration % print_every == 0:
        model.eval()
        with torch.no_grad():
            answer = model(test_source).argmax(2)
        model.train()
        right = answer == test_target
        print(
            f"({iteration} {iteration / n_iters:.0%}) loss {total / print_every:.4f} "
            f"digits {right.float().mean():.3f} whole dates {right.all(1).float().mean():.3f}"
        )
        total = 0.0
