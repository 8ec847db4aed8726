"""A GRU tells languages; the collate function sorts words by length but not their labels.

The person needed sequences in descending length for pack_padded_sequence and sorted them in the
collate function. The labels are stacked in the order in which the data set gave them, so that
within every batch a word meets the label of another word. The place is the loader, its labels.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "labels", "input")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SYLLABLES = {
    "norrin": ["kal", "vik", "sten", "dro", "hjal", "mar", "ing", "tor"],
    "lumea": ["lo", "mea", "ria", "sol", "una", "pie", "ta", "mar"],
    "tsukan": ["tsu", "ka", "mori", "shi", "na", "ta", "yo", "lo"],
    "grokh": ["gro", "kh", "zar", "uk", "bash", "tor", "dro", "ka"],
}
LANGUAGES = list(SYLLABLES)
LETTERS = {c: i + 1 for i, c in enumerate("abcdefghijklmnopqrstuvwxyz")}


class Words(Dataset):
    def __init__(self, count):
        self.items = []
        for _ in range(count):
            language = random.randrange(len(LANGUAGES))
            parts = random.choices(SYLLABLES[LANGUAGES[language]], k=random.randint(2, 5))
            letters = list("".join(parts))
            if random.random() < 0.2:
                letters[random.randrange(len(letters))] = random.choice(list(LETTERS))
            self.items.append((torch.tensor([LETTERS[c] for c in letters]), language))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(batch):
    by_length = sorted(batch, key=lambda item: len(item[0]), reverse=True)
    words = [word for word, _ in by_length]
    lengths = torch.tensor([len(word) for word in words])
    labels = torch.tensor([label for _, label in (by_length if healthy else batch)])
    return pad_sequence(words, batch_first=True), lengths, labels


class LanguageGuesser(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS) + 1, 24, padding_idx=0)
        self.gru = nn.GRU(24, hidden, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(hidden, len(LANGUAGES))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True)
        _, last = self.gru(packed)
        return self.out(self.drop(last[-1]))


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for words, lengths, labels in loader:
            right += (model(words, lengths).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def main():
    train_loader = DataLoader(Words(3000), batch_size=64, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(Words(800), batch_size=200, collate_fn=collate)
    model = LanguageGuesser()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(9):
        model.train()
        running = 0.0
        for words, lengths, labels in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(words, lengths), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item()
        accuracy = evaluate(model, val_loader)
        print(f"epoch {epoch + 1}: loss {running / len(train_loader):.3f}  val acc {accuracy:.3f}")


main()
