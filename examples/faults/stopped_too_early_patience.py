"""Early stopping with a min_delta of 0.3: an epoch that gains 0.29 counts as none.

The loss falls steadily when the training ends (silent). The place is the loop.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def __call__(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


class CharLSTM(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.emb = nn.Embedding(n, 16)
        self.lstm = nn.LSTM(16, 48, batch_first=True)
        self.out = nn.Linear(48, n)

    def forward(self, x):
        h, _ = self.lstm(self.emb(x))
        return self.out(h).transpose(1, 2)


healthy, seed = arguments(__doc__)
chars, alphabet = text(seed)
windows = chars[: len(chars) // 25 * 25].view(-1, 25)
train, val = windows[:1200], windows[1200:1500]
model = CharLSTM(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
criterion = nn.CrossEntropyLoss()
stop = EarlyStopping(patience=1, min_delta=0.001 if healthy else 0.3)
epoch = 0
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(train)).split(50):
        x = train[rows]
        loss = criterion(model(x[:, :-1]), x[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(val[:, :-1]), val[:, 1:]).item()
    if stop(val_loss):
        break
print(f"stopped after {epoch + 1} epochs, val loss {val_loss:.3f}")
