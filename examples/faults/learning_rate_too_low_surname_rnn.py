"""A GRU guesses the country of a surname with plain SGD at lr=1e-4, and keeps its first loss.

Steps of that size without momentum would need hundreds of epochs; the loss falls by thousandths and
the accuracy stays at guessing. The twin takes lr=0.5. The place is the optimizer's learning rate.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("learning_rate", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

learning_rate = 0.5 if healthy else 0.0001
hidden_size = 48
batch_size = 32
LETTERS = ".abcdefghijklmnopqrstuvwxyz"
LENGTH = 12
COUNTRIES = {
    "Italy": (("ro", "be", "ca", "lo", "ma", "gi", "vi"), ("ni", "lli", "tti", "sso", "no")),
    "Poland": (("ko", "wa", "ja", "no", "za", "wi", "pa"), ("ski", "czyk", "wicz", "ak", "ska")),
    "Japan": (("ta", "ya", "ma", "ka", "fu", "mi", "na"), ("moto", "mura", "da", "to", "shi")),
    "Greece": (("pa", "ge", "ka", "di", "ko", "mi", "the"), ("pou", "kis", "dis", "los", "ras")),
    "Sweden": (("lind", "berg", "carl", "an", "jo", "nor"), ("son", "gren", "qvist", "man")),
}


def make_names(n, r):
    names, countries = [], []
    for _ in range(n):
        country = r.randrange(len(COUNTRIES))
        beginnings, endings = list(COUNTRIES.values())[country]
        name = "".join(r.choices(beginnings, k=r.randint(1, 2))) + r.choice(endings)
        if r.random() < 0.3:
            place = r.randrange(len(name))
            name = name[:place] + r.choice(LETTERS[1:]) + name[place + 1 :]
        names.append(name[:LENGTH].rjust(LENGTH, "."))
        countries.append(country)
    numbers = torch.tensor([[LETTERS.index(c) for c in name] for name in names])
    return nn.functional.one_hot(numbers, len(LETTERS)).float(), torch.tensor(countries)


class CharGRU(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.rnn = nn.GRU(input_size, hidden_size, batch_first=True)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, line):
        _, hidden = self.rnn(line)
        return self.softmax(self.h2o(hidden[0]))


def evaluate(rnn, lines, categories):
    rnn.eval()
    with torch.no_grad():
        return (rnn(lines).argmax(1) == categories).float().mean().item()


r = random.Random(seed + 81)
train_lines, train_categories = make_names(1600, r)
test_lines, test_categories = make_names(400, r)
rnn = CharGRU(len(LETTERS), hidden_size, len(COUNTRIES))
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(rnn.parameters(), lr=learning_rate)

for epoch in range(1, 9):
    rnn.train()
    current_loss = 0.0
    batches = torch.randperm(len(train_lines)).split(batch_size)
    for batch in batches:
        rnn.zero_grad()
        loss = criterion(rnn(train_lines[batch]), train_categories[batch])
        loss.backward()
        nn.utils.clip_grad_norm_(rnn.parameters(), 3.0)
        optimizer.step()
        current_loss += loss.item()
    accuracy = evaluate(rnn, test_lines, test_categories)
    print(f"{epoch:2d} loss = {current_loss / len(batches):.4f} test accuracy = {accuracy:.3f}")
