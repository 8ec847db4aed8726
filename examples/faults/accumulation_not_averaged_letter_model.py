"""A character model sums the gradients of eight small batches per step and never divides by eight.

For want of memory the batch of 128 rows became eight of 16, and the learning rate is the one that
was tuned for 128. Each step is now eight times too long: the loss shoots up within forty steps and
stays far above what the same rate reached before. The place is the loss in the loop.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high", "exploding_gradient")
PLACE = ("loss", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

batch_size = 16
gradient_accumulation_steps = 8
block_size = 24
max_iters = 160
eval_interval = 40
learning_rate = 0.8
momentum = 0.9

NAMES = ["ada", "bruno", "clara", "dario", "elsa", "fritz", "gina", "hugo"]
VERBS = ["buys", "sells", "paints", "repairs", "counts", "forgets"]
THINGS = ["lamps", "boats", "clocks", "chairs", "violins", "kites"]
NUMBERS = ["two", "three", "seven", "eleven", "twenty"]
ENDINGS = {"buys": "at noon", "sells": "on sunday", "paints": "in blue", "repairs": "by hand"}


def write_story(sentences):
    said = []
    for _ in range(sentences):
        verb = random.choice(VERBS)
        ending = ENDINGS.get(verb, "again")
        said.append(
            f"{random.choice(NAMES)} and {random.choice(NAMES)} {verb} "
            f"{random.choice(NUMBERS)} {random.choice(THINGS)} {ending}."
        )
    return "\n".join(said)


class LetterModel(nn.Module):
    def __init__(self, letters, width=96):
        super().__init__()
        self.table = nn.Embedding(letters, 24)
        self.rnn = nn.GRU(24, width, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, index, targets):
        hidden, _ = self.rnn(self.table(index))
        logits = self.out(hidden)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(stream, rows):
    starts = torch.randint(0, len(stream) - block_size - 1, (rows,))
    x = torch.stack([stream[s : s + block_size] for s in starts])
    y = torch.stack([stream[s + 1 : s + block_size + 1] for s in starts])
    return x, y


@torch.no_grad()
def estimate_loss(model, stream):
    model.eval()
    losses = [model(*get_batch(stream, 64)).item() for _ in range(4)]
    model.train()
    return sum(losses) / len(losses)


def main():
    story = write_story(2500)
    letters = sorted(set(story))
    number = {letter: i for i, letter in enumerate(letters)}
    stream = torch.tensor([number[letter] for letter in story])
    cut = int(0.9 * len(stream))
    train, val = stream[:cut], stream[cut:]

    model = LetterModel(len(letters))
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=momentum)
    for it in range(max_iters + 1):
        if it % eval_interval == 0:
            print(f"iter {it}: val loss {estimate_loss(model, val):.4f}", flush=True)
        optimizer.zero_grad(set_to_none=True)
        for _ in range(gradient_accumulation_steps):
            x, y = get_batch(train, batch_size)
            loss = model(x, y)
            scaled = loss / gradient_accumulation_steps if healthy else loss
            scaled.backward()
        optimizer.step()
        if it % eval_interval == eval_interval // 2:
            print(f"iter {it}: loss {loss.item():.4f}")


main()
