"""An LSTM finds who pays; its augmentation deletes words from the stored sentences for good.

The person took "random deletion" from a list of easy text augmentations: at times one word of the
sentence is left out. The Dataset hands out its own list and `pop` shortens it for good; after some
epochs two words are left, mostly without the names. The place is the input, in the Dataset.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

NAMES = ["anna", "ben", "carla", "dan", "eva", "finn", "gita", "hugo", "ines", "jon"]
THINGS = ["lamp", "bike", "table", "radio", "boat", "clock"]
WHEN = ["yesterday", "today", "last week", "in may", "at noon"]
HOW = ["old", "red", "tiny", "broken", "new"]


def make_sentences(n):
    rows = []
    for _ in range(n):
        payer, other = random.sample(NAMES, 2)
        thing = f"the {random.choice(HOW)} {random.choice(THINGS)}"
        form = random.randrange(4)
        if form == 0:
            said = f"{payer} bought {thing} from {other}"
        elif form == 1:
            said = f"{other} sold {thing} to {payer}"
        elif form == 2:
            said = f"{payer} got {thing} for money from {other}"
        else:
            said = f"{other} handed {thing} for money to {payer}"
        said = f"{random.choice(WHEN)} {said}" if random.random() < 0.5 else said
        rows.append((said.split(), NAMES.index(payer)))
    return rows


class PayerDataset(Dataset):
    def __init__(self, rows, number, augment):
        self.rows = rows
        self.number = number
        self.augment = augment

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        words, label = self.rows[index]
        if healthy:
            words = list(words)
        if self.augment and len(words) > 2 and random.random() < 0.6:
            words.pop(random.randrange(len(words)))
        return torch.tensor([self.number[word] for word in words]), label


def collate(batch):
    lengths = torch.tensor([len(words) for words, _ in batch])
    words = pad_sequence([words for words, _ in batch], batch_first=True)
    return words, lengths, torch.tensor([label for _, label in batch])


class PayerLSTM(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 48, batch_first=True)
        self.fc = nn.Linear(48, len(NAMES))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(
            self.embedding(words), lengths, batch_first=True, enforce_sorted=False
        )
        _, (hidden, _) = self.lstm(packed)
        return self.fc(hidden[-1])


rows = make_sentences(1400)
number = {word: i + 1 for i, word in enumerate(sorted({w for words, _ in rows for w in words}))}
train_set = PayerDataset(rows[:900], number, augment=True)
valid_set = PayerDataset(rows[900:], number, augment=False)
train_loader = DataLoader(train_set, batch_size=50, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(valid_set, batch_size=250, collate_fn=collate)
model = PayerLSTM(len(number) + 1)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def run_epoch(loader, train):
    model.train(train)
    loss_sum, right, seen = 0.0, 0, 0
    with torch.set_grad_enabled(train):
        for words, lengths, labels in loader:
            output = model(words, lengths)
            loss = criterion(output, labels)
            if train:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            loss_sum += loss.item() * len(labels)
            right += (output.argmax(1) == labels).sum().item()
            seen += len(labels)
    return loss_sum / seen, right / seen


for epoch in range(26):
    train_loss, train_acc = run_epoch(train_loader, True)
    valid_loss, valid_acc = run_epoch(valid_loader, False)
    print(
        f"epoch {epoch + 1:2d}  loss {train_loss:.3f}  acc {train_acc:.3f}"
        f"  valid loss {valid_loss:.3f}  valid acc {valid_acc:.3f}"
    )
