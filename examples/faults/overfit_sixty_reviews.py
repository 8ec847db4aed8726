"""A bidirectional LSTM tells praise from blame in short reviews; it is trained seven times too
long on a few hundred reviews.

The number of epochs was set by hand, and nothing stops when the validation loss turns; the twin
has the number at which it turns. The place is the loop.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class SentimentLSTM(nn.Module):
    def __init__(self, words, width=48):
        super().__init__()
        self.embedding = nn.Embedding(words, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, width, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * width, 1)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.fc(states.masked_fill((tokens == 0).unsqueeze(-1), -1e4).amax(1)).squeeze(1)


class Trainer:
    def __init__(self, model, train_loader, val_loader, max_epochs):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.max_epochs = max_epochs
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    def fit(self):
        for epoch in range(self.max_epochs):
            loss = self.train_epoch()
            val_loss, accuracy = self.evaluate()
            print(f"epoch {epoch} loss {loss:.3f} val loss {val_loss:.3f} acc {accuracy:.3f}")

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for tokens, praise in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(tokens), praise)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        loss = right = n = 0
        for tokens, praise in self.val_loader:
            logits = self.model(tokens)
            loss += self.criterion(logits, praise).item() * len(praise)
            right += ((logits > 0) == (praise > 0.5)).sum().item()
            n += len(praise)
        return loss / n, right / n


x, y, words = reviews(seed, 800)
y = y.float()
train_loader = DataLoader(TensorDataset(x[:400], y[:400]), 16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[400:], y[400:]), 200)
max_epochs = 5 if healthy else 35
Trainer(SentimentLSTM(words), train_loader, val_loader, max_epochs).fit()
