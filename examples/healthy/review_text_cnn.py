"""Praise or blame in short reviews by Kim's text CNN, as everybody has written it once.

Three widths of convolutions over the words, the maximum over the places, dropout of 0.5 before the
output. The review's length varies; padding is word 0 and its vector stays zero.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "dropout of a half: the training loss stays above the validation loss for most of the run"

_, seed = arguments(__doc__)


class TextCNN(nn.Module):
    def __init__(self, vocabulary, dim=32, channels=24, widths=(2, 3, 4)):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, channels, w, padding=w - 1) for w in widths])
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(channels * len(widths), 2)

    def forward(self, words):
        x = self.embed(words).transpose(1, 2)
        pooled = [F.relu(conv(x)).amax(2) for conv in self.convs]
        return self.fc(self.dropout(torch.cat(pooled, 1)))


def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for words, label in loader:
            logits = model(words)
            loss += F.cross_entropy(logits, label, reduction="sum").item()
            hits += (logits.argmax(1) == label).sum().item()
            n += len(label)
    return loss / n, hits / n


x, y, vocabulary = reviews(seed, n=2000)
x_train, y_train, x_val, y_val = x[:1600], y[:1600], x[1600:], y[1600:]
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=200)

model = TextCNN(vocabulary)
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3, weight_decay=1e-5)

for epoch in range(1, 9):
    model.train()
    running = 0.0
    for words, label in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(words), label)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, val_accuracy = evaluate(model, val_loader)
    print(
        f"epoch {epoch} train {running / len(train_loader):.3f} "
        f"val {val_loss:.3f} accuracy {val_accuracy:.3f}"
    )
