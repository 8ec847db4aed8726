"""A wave classifier brings its batch to the (time, batch, feature) order of nn.LSTM by view()
instead of by transpose().

view() only cuts the same memory anew, so each "series" that the LSTM reads is put together from
pieces of different samples, and its label belongs to none of them. Accuracy is at chance. The twin
transposes. The place is `lstm`, the input or ``.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "samples_mixed"
ACCEPT = ("label_misalignment",)
PLACE = ("lstm", "input*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class WaveLSTM(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden)
        self.fc = nn.Linear(hidden, 3)

    def forward(self, x):
        batch, time, channels = x.shape
        x = x.transpose(0, 1) if healthy else x.view(time, batch, channels)
        h, _ = self.lstm(x)
        return self.fc(h.mean(0))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return criterion(out, y).item(), (out.argmax(1) == y).float().mean().item()


x, y = waves(seed, n=3000)
x_train, x_val = x[:2400], x[2400:]
x_val = (x_val - x_train.mean()) / x_train.std()
x_train = (x_train - x_train.mean()) / x_train.std()
y_train, y_val = y[:2400], y[2400:]

model = WaveLSTM()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=60, shuffle=True)
epochs = 18
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=epochs * len(loader))
for epoch in range(1, epochs + 1):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
    if epoch % 3 == 0:
        val, acc = evaluate(model, x_val, y_val)
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, val {val:.3f}, acc {acc:.3f}")
