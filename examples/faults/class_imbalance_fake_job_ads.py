"""A GRU looks for fake job ads, four in a hundred, in plainly shuffled batches, and finds none.

A batch of 64 ads holds two or three fakes, and the loss is lowest where every ad passes as real.
The twin draws its batches with a WeightedRandomSampler, so that both classes come equally often.
The place is the loader, and the labels of its batches.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import f1_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loss", "labels", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

VOCAB, LENGTH = 110, 18
SCAM_WORDS, SOLID_WORDS = np.arange(1, 13), np.arange(13, 33)  # "fee", "wire" / "pension", "team"


def write_ads(n, rng):
    fake = (rng.random(n) < 0.04).astype(int)
    ads = rng.integers(33, VOCAB, (n, LENGTH))
    for row, is_fake in enumerate(fake):
        places = rng.permutation(LENGTH)
        scams = rng.binomial(6, 0.34 if is_fake else 0.06)
        solids = rng.binomial(6, 0.15 if is_fake else 0.40)
        ads[row, places[:scams]] = rng.choice(SCAM_WORDS, scams)
        ads[row, places[scams : scams + solids]] = rng.choice(SOLID_WORDS, solids)
    return torch.tensor(ads), torch.tensor(fake)


class AdClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, 16)
        self.gru = nn.GRU(16, 24, batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(24, 2)

    def forward(self, tokens):
        states, _ = self.gru(self.embedding(tokens))
        return self.fc(self.drop(states.mean(dim=1)))


def fit(model, train_loader, valid_x, valid_y, epochs):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for tokens, fake in train_loader:
            loss = criterion(model(tokens), fake)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            logits = model(valid_x)
        said = logits.argmax(1)
        accuracy = (said == valid_y).float().mean().item()
        recall = said[valid_y == 1].float().mean().item()
        print(
            f"[{epoch + 1}/{epochs}] loss {total / len(train_loader):.4f} acc {accuracy:.3f} "
            f"recall {recall:.3f} f1 {f1_score(valid_y, said):.3f} "
            f"auc {roc_auc_score(valid_y, logits[:, 1] - logits[:, 0]):.3f}"
        )


def main():
    rng = np.random.default_rng(seed + 21)
    train_x, train_y = write_ads(8000, rng)
    valid_x, valid_y = write_ads(2000, rng)
    train_set = TensorDataset(train_x, train_y)
    if healthy:
        weights = 1.0 / torch.bincount(train_y).float()
        sampler = WeightedRandomSampler(weights[train_y], num_samples=len(train_y))
        train_loader = DataLoader(train_set, batch_size=64, sampler=sampler)
    else:
        train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    fit(AdClassifier(), train_loader, valid_x, valid_y, epochs=4)


main()
