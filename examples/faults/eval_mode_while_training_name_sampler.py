"""Letter model of place names that prints samples on the way; the sampler sets eval mode and
dropout stays off after it.

The person sampled some names before the first epoch and after each, by a method that calls eval()
and never train() again. From the first step on the network trains without its dropout and learns
the few names by heart. The place is the loop, that is the mode of the model and its dropout.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "model", "drop*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FIRST = [
    "ash",
    "bram",
    "cal",
    "dun",
    "east",
    "fen",
    "glen",
    "hart",
    "kings",
    "lang",
    "mil",
    "nor",
    "oak",
    "pres",
    "red",
    "stan",
    "thorn",
    "west",
]
MIDDLE = ["", "", "e", "er", "ing", "le"]
LAST = [
    "bury",
    "by",
    "cliffe",
    "combe",
    "dale",
    "field",
    "ford",
    "ham",
    "ley",
    "mere",
    "minster",
    "stead",
    "ton",
    "wick",
    "worth",
]
LETTERS = "#abcdefghijklmnopqrstuvwxyz"
CONFIG = {"embed": 24, "hidden": 192, "dropout": 0.5, "lr": 4e-3, "batch": 32, "epochs": 30}


def invent_names(rng):
    """Names by a grammar, with some letters doubled or dropped as time went by."""
    names = set()
    while len(names) < 420:
        name = rng.choice(FIRST) + rng.choice(MIDDLE) + rng.choice(LAST)
        if rng.random() < 0.3:
            place = rng.randrange(1, len(name) - 1)
            name = name[:place] + rng.choice([name[place] * 2, ""]) + name[place + 1 :]
        names.add(name)
    names = sorted(names)
    rng.shuffle(names)
    return names


def encode(names):
    rows = [torch.tensor([LETTERS.index(c) for c in f"#{name}#"]) for name in names]
    return pad_sequence(rows, batch_first=True, padding_value=-1)


class NameModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), cfg["embed"])
        self.drop_in = nn.Dropout(0.2)
        self.rnn = nn.GRU(cfg["embed"], cfg["hidden"], batch_first=True)
        self.drop = nn.Dropout(cfg["dropout"])
        self.out = nn.Linear(cfg["hidden"], len(LETTERS))

    def forward(self, letters, state=None):
        hidden, state = self.rnn(self.drop_in(self.embed(letters.clamp(min=0))), state)
        return self.out(self.drop(hidden)), state

    @torch.no_grad()
    def sample(self, longest=18):
        self.eval()
        letter, state, name = torch.zeros(1, 1, dtype=torch.long), None, ""
        for _ in range(longest):
            logits, state = self(letter, state)
            letter = torch.multinomial(logits[0].softmax(-1), 1)
            if letter.item() == 0:
                break
            name += LETTERS[letter.item()]
        return name


def name_loss(model, rows):
    logits, _ = model(rows[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), ignore_index=-1)


def main():
    names = invent_names(random.Random(seed))
    train, val = encode(names[:220]), encode(names[220:])
    model = NameModel(CONFIG)
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 15, gamma=0.3)
    model.train()
    print("before training:", model.sample())
    for epoch in range(CONFIG["epochs"]):
        if healthy:
            model.train()
        total = 0.0
        for rows in torch.randperm(len(train)).split(CONFIG["batch"]):
            loss = name_loss(model, train[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(rows) / len(train)
        schedule.step()
        examples = ", ".join(model.sample() for _ in range(3))
        with torch.no_grad():
            held_out = name_loss(model, val).item()
        print(f"epoch {epoch + 1:2d}  train {total:.3f}  val {held_out:.3f}  {examples}")


if __name__ == "__main__":
    main()
