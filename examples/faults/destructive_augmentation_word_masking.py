"""An intent classifier for messages to a chat bot; its augmentation masks nearly all the words.

Random words are replaced by <mask> in training to make the model robust, but the probability
given is that of keeping a word: nine words in ten go, and with them what the message wants.
Validation has whole messages. The place is the augmentation, that is the input of the model in
training.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input*", "embed*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

VOCABULARY, LENGTH, INTENTS, MASK = 300, 14, 8, 1
r = random.Random(seed)
VERBS = [[r.randrange(10, VOCABULARY) for _ in range(4)] for _ in range(4)]
THINGS = [[r.randrange(10, VOCABULARY) for _ in range(6)] for _ in range(2)]


def message():
    """An intent is a verb (of four) with its thing (of two) right after it; others stand elsewhere, apart."""  # noqa: E501
    intent = r.randrange(INTENTS)
    words = [r.randrange(10, VOCABULARY) for _ in range(r.randint(5, LENGTH - 5))]
    words.insert(r.randrange(len(words)), r.choice(r.choice(VERBS)))
    words.insert(r.randrange(len(words)), r.choice(r.choice(THINGS)))
    place = r.randrange(len(words))
    words[place:place] = [r.choice(VERBS[intent // 2]), r.choice(THINGS[intent % 2])]
    return words + [0] * (LENGTH - len(words)), intent


class WordMasking:
    def __init__(self, p):
        self.p = p

    def __call__(self, words):
        masked = (torch.rand(len(words)) < self.p) & (words != 0)
        return words.masked_fill(masked, MASK)


class Messages(Dataset):
    def __init__(self, rows, transform=None):
        self.words = torch.tensor([words for words, _ in rows])
        self.intents = torch.tensor([intent for _, intent in rows])
        self.transform = transform

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        words = self.words[i]
        return (self.transform(words) if self.transform else words), self.intents[i]


class IntentCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32, padding_idx=0)
        self.conv = nn.Conv1d(32, 64, 3, padding=1)
        self.out = nn.Linear(64, INTENTS)

    def forward(self, words):
        features = self.conv(self.embed(words).transpose(1, 2)).relu()
        return self.out(features.amax(2))


def evaluate(model, loader):
    model.eval()
    right = loss = 0
    with torch.no_grad():
        for words, intents in loader:
            logits = model(words)
            loss += nn.functional.cross_entropy(logits, intents, reduction="sum").item()
            right += (logits.argmax(1) == intents).sum().item()
    return loss / len(loader.dataset), right / len(loader.dataset)


def main():
    augment = WordMasking(p=0.1 if healthy else 0.9)
    train_set = Messages([message() for _ in range(4000)], augment)
    val_set = Messages([message() for _ in range(800)])
    loader, val_loader = DataLoader(train_set, 64, shuffle=True), DataLoader(val_set, 200)
    model = IntentCNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(10):
        model.train()
        running = 0.0
        for words, intents in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(words), intents)
            loss.backward()
            optimizer.step()
            running += loss.item() / len(loader)
        print(
            "epoch %d loss %.3f val loss %.3f acc %.3f"  # noqa: UP031
            % (epoch, running, *evaluate(model, val_loader))
        )


if __name__ == "__main__":
    main()
