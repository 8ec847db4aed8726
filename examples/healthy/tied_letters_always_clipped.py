"""A letter model with rate 1, tied weights and a gradient that is clipped in nearly every step.

People ask whether SGD with a rate of 1 and a loss summed over the span can be right, if all its
gradients are clipped, and why the output layer is not among the parameters. Rate times norm
bounds each step, which is part of the recipe; the output layer shares its matrix with the
embedding and is listed once.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = (
    "rate 1, clipped in nearly each step, a weight that occurs twice: an old recipe, and it learns"
)
_, seed = arguments(__doc__)

ROWS, SPAN, NORM = 20, 30, 1.0


class LetterModel(nn.Module):
    def __init__(self, letters: int, size: int = 64):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.embedding = nn.Embedding(letters, size)
        self.rnn = nn.LSTM(size, size)
        self.out = nn.Linear(size, letters)
        self.embedding.weight.data.uniform_(-0.1, 0.1)
        self.out.weight = self.embedding.weight
        self.out.bias.data.zero_()

    def forward(self, letters, state):
        states, state = self.rnn(self.drop(self.embedding(letters)), state)
        return self.out(self.drop(states)), state


def in_columns(numbers: torch.Tensor, columns: int) -> torch.Tensor:
    length = len(numbers) // columns
    return numbers[: length * columns].view(columns, length).t().contiguous()


def spans(source: torch.Tensor):
    for begin in range(0, len(source) - 1, SPAN):
        end = min(begin + SPAN, len(source) - 1)
        yield source[begin:end], source[begin + 1 : end + 1]


def cut(state):
    return None if state is None else tuple(part.detach() for part in state)


@torch.no_grad()
def evaluate(model, source):
    model.eval()
    state, total, right, n = None, 0.0, 0, 0
    for letters, following in spans(source):
        scores, state = model(letters, state)
        total += F.cross_entropy(scores.flatten(0, 1), following.flatten(), reduction="sum").item()
        right += (scores.argmax(-1) == following).sum().item()
        n += following.numel()
    return total / n, right / n


def main():
    numbers, alphabet = text(seed, 2000)
    border = int(0.85 * len(numbers))
    train, val = in_columns(numbers[:border], ROWS), in_columns(numbers[border:], ROWS)
    model = LetterModel(len(alphabet))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for epoch in range(1, 9):
        model.train()
        state, total, clipped, batches = None, 0.0, 0, 0
        for letters, following in spans(train):
            scores, state = model(letters, cut(state))
            loss = F.cross_entropy(scores.flatten(0, 1), following.flatten())
            optimizer.zero_grad()
            (SPAN * loss).backward()
            clipped += int(nn.utils.clip_grad_norm_(model.parameters(), NORM) > NORM)
            optimizer.step()
            total, batches = total + loss.item(), batches + 1
        val_loss, right = evaluate(model, val)
        print(
            f"epoch {epoch}  lr {optimizer.param_groups[0]['lr']:.2f}  train {total / batches:.3f}"
            f"  val {val_loss:.3f} ({val_loss / math.log(2):.2f} bits)  letters right {right:.3f}"
            f"  clipped {clipped / batches:.0%} of {batches}"
        )
        if epoch >= 2:
            optimizer.param_groups[0]["lr"] *= 0.6


if __name__ == "__main__":
    main()
