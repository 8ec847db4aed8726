"""An LSTM that reads short reviews, trained for three epochs.

The number of epochs is that of the tutorial's much larger corpus. Here it is a few dozen steps;
the loss has only begun to fall when the program ends. The place is the loop's range. The twin goes
on to 15.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
EPOCHS = 15 if healthy else 3
x, y, words = reviews(seed, n=2000)
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=250)


class SentimentLSTM(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(24, 1)

    def forward(self, tokens):
        out, _ = self.lstm(self.embedding(tokens))
        mask = (tokens != 0).unsqueeze(-1)
        mean = (out * mask).sum(1) / mask.sum(1)
        return self.fc(self.dropout(mean)).squeeze(1)


model = SentimentLSTM(words)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(EPOCHS):
    model.train()
    for i, (tokens, label) in enumerate(train):
        optimizer.zero_grad()
        loss = criterion(model(tokens), label.float())
        loss.backward()
        optimizer.step()
        if i % 8 == 0:
            print(f"epoch {epoch + 1} batch {i}: loss {loss.item():.3f}")
    model.eval()
    right, val_loss = 0, 0.0
    with torch.no_grad():
        for tokens, label in val:
            out = model(tokens)
            val_loss += criterion(out, label.float()).item() / len(val)
            right += ((out > 0) == label).sum().item()
    print(f"epoch {epoch + 1}: val loss {val_loss:.3f}  accuracy {right / 500:.3f}")
