"""A recurrent net learns to name the largest of a row of noisy numbers, in lessons that get longer.

The training loss jumps up each time a longer lesson begins, and falls again. That is the
curriculum at work: the task has become harder, not the net worse, as the test on the full length
shows.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the training loss jumps up several times, at each longer lesson; the task gets harder by plan"
)
_, seed = arguments(__doc__)

LESSONS = (3, 6, 10, 15)
LONGEST, KINDS, STEPS = 15, 8, 160


def rows_of_cards(count, length):
    """Cards of eight suits with a number each; the answer is the suit of the highest card."""
    suits = torch.randint(0, KINDS, (count, length))
    numbers = torch.rand(count, length)
    answer = suits.gather(1, numbers.argmax(1, keepdim=True)).squeeze(1)
    x = torch.cat([F.one_hot(suits, KINDS).float(), 3 * numbers.unsqueeze(-1) - 1.5], dim=-1)
    return x, answer


class HighestCard(nn.Module):
    def __init__(self, width=56):
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(KINDS + 1, width), nn.ReLU())
        self.gru = nn.GRU(width, width, batch_first=True)
        self.answer = nn.Linear(width, KINDS)

    def forward(self, x):
        _, state = self.gru(self.enter(x))
        return self.answer(state[-1])


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


def main():
    x_test, y_test = rows_of_cards(1000, LONGEST)
    model = HighestCard()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for lesson in LESSONS:
        losses = []
        for _ in range(STEPS):
            x, y = rows_of_cards(96, lesson)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        print(
            f"lesson of {lesson:2d} cards: loss {sum(losses[:10]) / 10:.3f} at its start, "
            f"{sum(losses[-20:]) / 20:.3f} at its end; rows of {LONGEST}: "
            f"{accuracy(model, x_test, y_test):.3f}"
        )


main()
