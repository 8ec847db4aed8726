"""An LSTM classifies reviews with a dropout of 0.85 on words, states and head.

Overfitting was fought with one dropout after the other. Of a review's few telling words hardly any
gets through, the training loss stays near ln 2. The place is the dropout layers. The twin uses 0.2.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("embed_drop", "state_drop", "head_drop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
DROPOUT = 0.2 if healthy else 0.85
x, y, vocab_size = reviews(seed, n=1500, length=14)
train = TensorDataset(x[:1200], y[:1200])
valid = TensorDataset(x[1200:], y[1200:])


class Sentiment(nn.Module):
    def __init__(self, dim=32, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.embed_drop = nn.Dropout(DROPOUT)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.state_drop = nn.Dropout(DROPOUT)
        self.fc = nn.Linear(2 * hidden, 16)
        self.head_drop = nn.Dropout(DROPOUT)
        self.out = nn.Linear(16, 2)

    def forward(self, tokens):
        h, _ = self.lstm(self.embed_drop(self.embed(tokens)))
        h = self.state_drop(h.max(dim=1).values)
        return self.out(self.head_drop(torch.relu(self.fc(h))))


def run(model, loader, optimizer=None):
    model.train(optimizer is not None)
    loss_sum = hits = count = 0
    with torch.set_grad_enabled(optimizer is not None):
        for tokens, labels in loader:
            logits = model(tokens)
            loss = nn.functional.cross_entropy(logits, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(labels)
            hits += (logits.argmax(1) == labels).sum().item()
            count += len(labels)
    return loss_sum / count, hits / count


model = Sentiment()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
train_loader = DataLoader(train, batch_size=30, shuffle=True)
valid_loader = DataLoader(valid, batch_size=100)
for epoch in range(6):
    train_loss, train_acc = run(model, train_loader, optimizer)
    valid_loss, valid_acc = run(model, valid_loader)
    print(
        f"{epoch}: train {train_loss:.4f} / {train_acc:.3f}  "
        f"valid {valid_loss:.4f} / {valid_acc:.3f}"
    )
