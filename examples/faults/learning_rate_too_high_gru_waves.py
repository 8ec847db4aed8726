"""A GRU that tells three wave shapes apart, by RMSprop at a rate of 2.

The loss jumps up and down from batch to batch and never settles; at a rate of 0.005 it does. The
place is the optimizer.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True


class WaveClassifier(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 3)

    def forward(self, x):
        states, _ = self.gru(x)
        return self.fc(states.mean(1))


healthy, seed = arguments(__doc__)
data = TensorDataset(*waves(seed))
train, val = random_split(data, [640, 160])
train_dl = DataLoader(train, batch_size=32, shuffle=True)
val_dl = DataLoader(val, batch_size=160)
model = WaveClassifier()
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.RMSprop(model.parameters(), lr=0.005 if healthy else 2.0)


def run_epoch(loader, train):
    model.train(train)
    total, right = 0.0, 0
    with torch.set_grad_enabled(train):
        for x, y in loader:
            out = model(x)
            loss = loss_fn(out, y)
            if train:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(y)
            right += (out.argmax(1) == y).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)


for epoch in range(15):
    train_loss, train_acc = run_epoch(train_dl, True)
    val_loss, val_acc = run_epoch(val_dl, False)
    print(f"{epoch:2d} train {train_loss:.3f} {train_acc:.3f}  val {val_loss:.3f} {val_acc:.3f}")
