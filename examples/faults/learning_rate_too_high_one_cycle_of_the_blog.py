"""Which language is a surname from? A GRU by characters, with one-cycle and AdamW.

max_lr=0.5 is from a "super-convergence" post that trained a ResNet by SGD; for AdamW and a GRU it
is a hundred times too much. The twin has 5e-3. The place is the optimizer.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "loop", "")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
STYLES = {
    "italian": (["ro", "be", "ma", "ca", "vi", "lu", "gio"], ["ni", "tti", "lli", "ssi", "no"]),
    "polish": (
        ["ko", "wo", "ma", "za", "lu", "gra", "wi"],
        ["wski", "cki", "czyk", "niak", "wicz"],
    ),
    "japanese": (["ta", "ko", "ma", "yo", "wa", "mi", "sa"], ["naka", "moto", "shi", "mura", "no"]),
    "finnish": (["ko", "vi", "ma", "la", "ni", "sa", "ka"], ["nen", "la", "maki", "ri", "no"]),
}


def surname(language):
    roots, ends = STYLES[language]
    name = "".join(random.choice(roots) for _ in range(random.randint(1, 3))) + random.choice(ends)
    if random.random() < 0.3:  # spelling
        i = random.randrange(len(name))
        name = name[:i] + random.choice(LETTERS) + name[i + 1 :]
    return name


def dataset(n):
    languages = list(STYLES)
    pairs = [(surname(lang), k) for k, lang in enumerate(languages) for _ in range(n // 4)]
    random.shuffle(pairs)
    return pairs


def collate(pairs):
    names = [torch.tensor([LETTERS.index(c) for c in name]) for name, _ in pairs]
    lengths = torch.tensor([len(name) for name in names])
    return pad_sequence(names, batch_first=True), lengths, torch.tensor([k for _, k in pairs])


class NameGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(26, 16)
        self.gru = nn.GRU(16, 48, batch_first=True)
        self.fc = nn.Linear(48, len(STYLES))

    def forward(self, chars, lengths):
        packed = pack_padded_sequence(
            self.embed(chars), lengths, batch_first=True, enforce_sorted=False
        )
        return self.fc(self.gru(packed)[1][-1])


train, val = dataset(4000), dataset(800)
model = NameGRU()
loss_fn = nn.CrossEntropyLoss()
EPOCHS, BATCH = 3, 40
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=5e-3 if healthy else 0.5, epochs=EPOCHS, steps_per_epoch=len(train) // BATCH
)
for epoch in range(EPOCHS):
    model.train()
    random.shuffle(train)
    losses = []
    for i in range(0, len(train), BATCH):
        chars, lengths, labels = collate(train[i : i + BATCH])
        loss = loss_fn(model(chars, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        chars, lengths, labels = collate(val)
        logits = model(chars, lengths)
    print(
        f"epoch {epoch}: train {sum(losses) / len(losses):.3f} val {loss_fn(logits, labels):.3f} "
        f"acc {(logits.argmax(1) == labels).float().mean():.3f} lr {scheduler.get_last_lr()[0]:.2g}"
    )
