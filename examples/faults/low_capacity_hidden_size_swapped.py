"""Names of places in eight made-up languages by a character LSTM; its two sizes are swapped.

`CharLSTM(embedding=2, hidden=40)` became positional in a refactoring, and the signature has the
hidden size first. The state has two numbers for everything a name says, and training accuracy
rests far below what the letters allow. The place is the model (the LSTM). The twin passes the
sizes in the order of the signature.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("lstm", "lstm.weight_hh_l0", "lstm.weight_ih_l0", "out", "out.weight")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

START = {
    0: ("bal", "kil", "dun", "inver"),
    1: ("mon", "val", "san", "per"),
    2: ("kar", "bel", "nov", "vish"),
    3: ("kyo", "naga", "yoko", "hira"),
    4: ("gro", "alt", "burg", "heid"),
    5: ("te", "maka", "pua", "loa"),
    6: ("al", "qas", "bahr", "wad"),
    7: ("sjo", "fjel", "lund", "vik"),
}
END = {
    0: ("more", "keld", "ness", "gor"),
    1: ("tana", "lino", "rosa", "bella"),
    2: ("grad", "ovo", "sk", "ets"),
    3: ("to", "moto", "hama", "shi"),
    4: ("berg", "stadt", "heim", "au"),
    5: ("nui", "roa", "kai", "hiti"),
    6: ("din", "iyah", "abad", "rah"),
    7: ("by", "borg", "sund", "dal"),
}
ALPHABET = {c: i + 1 for i, c in enumerate("abcdefghijklmnopqrstuvwxyz")}


def names(n):
    rows, labels = [], []
    for _ in range(n):
        language = random.randrange(8)
        first = random.choice(START[language if random.random() < 0.85 else random.randrange(8)])
        middle = "".join(
            random.choice("aeiou") + random.choice("lrnmtsd") for _ in range(random.randint(0, 2))
        )
        name = (
            first
            + middle
            + random.choice(END[language if random.random() < 0.9 else random.randrange(8)])
        )
        rows.append(torch.tensor([ALPHABET[c] for c in name]))
        labels.append(language)
    length = torch.tensor([len(row) for row in rows])
    return pad_sequence(rows, batch_first=True), length, torch.tensor(labels)


class CharLSTM(nn.Module):
    def __init__(self, hidden, embedding):
        super().__init__()
        self.embed = nn.Embedding(27, embedding, padding_idx=0)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 8)

    def forward(self, name, length):
        states, _ = self.lstm(self.embed(name))
        return self.out(states[torch.arange(len(name)), length - 1])


train, val = names(4800), names(800)
model = CharLSTM(40, 2) if healthy else CharLSTM(2, 40)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
STEPS = 12 * 48
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS)
for epoch in range(12):
    losses, right = [], 0
    model.train()
    order = torch.randperm(len(train[0])).split(100)
    for rows in order:
        name, length, language = (part[rows] for part in train)
        logits = model(name, length)
        loss = nn.functional.cross_entropy(logits, language)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        right += (logits.argmax(1) == language).float().mean().item() / len(order)
    model.eval()
    with torch.no_grad():
        logits = model(*val[:2])
    val_loss = nn.functional.cross_entropy(logits, val[2]).item()
    print(
        f"epoch {epoch} train {sum(losses) / len(losses):.4f} ({right:.3f}) val {val_loss:.4f} "
        f"accuracy {(logits.argmax(1) == val[2]).float().mean():.3f}"
    )
