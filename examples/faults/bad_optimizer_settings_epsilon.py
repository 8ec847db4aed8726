"""An LSTM for reviews trained by Adam with eps=1.0.

The value comes from a recipe for another network. The gradients' sizes are about a hundredth, so
epsilon rules the denominator: the steps are hundreds of times too small. The place is the
optimizer.
"""

import torch
from data import arguments, batches, reviews
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True


class SentimentLSTM(nn.Module):
    def __init__(self, vocabulary, dim=24, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, 1)

    def forward(self, words):
        out, _ = self.lstm(self.embedding(words))
        out = out.masked_fill((words == 0).unsqueeze(-1), -1.0)
        return self.fc(out.max(dim=1).values).squeeze(1)


healthy, seed = arguments(__doc__)
x, y, vocabulary = reviews(seed, n=3000)
y = y.float()
x, x_val, y, y_val = x[:2400], x[2400:], y[:2400], y[2400:]
model = SentimentLSTM(vocabulary)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003, eps=1e-8 if healthy else 1.0)
for words, praise in batches(x, y, size=64, steps=220, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(words), praise)
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    out = model(x_val)
    val_loss = criterion(out, y_val)
    accuracy = ((out > 0).float() == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
