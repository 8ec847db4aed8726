"""Trains a GRU classifier on noisy waves with plain SGD at 3e-5, a rate meant for the fine-tuning
of big models with Adam.

Plain SGD multiplies the small gradients of this net by 3e-5, so that the weights hardly move. The
loss stays at its first value (ln 3) for the whole training and the accuracy stays at chance. The
twin uses 0.3. The place is the optimizer.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
config = {"lr": 0.3 if healthy else 3e-5, "batch_size": 32, "epochs": 10, "hidden": 32}

x, y = waves(seed, n=2000)
x_train, y_train, x_val, y_val = x[:1600], y[:1600], x[1600:], y[1600:]


class WaveNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(2 * hidden, 3)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.fc(torch.cat([h.mean(dim=1), h.amax(dim=1)], 1))


model = WaveNet(config["hidden"])
optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.0)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(config["epochs"]):
    model.train()
    order = torch.randperm(len(x_train))
    running = 0.0
    count = 0
    for start in range(0, len(order), config["batch_size"]):
        idx = order[start : start + config["batch_size"]]
        optimizer.zero_grad()
        loss = loss_fn(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        running += loss.item()
        count += 1
    model.eval()
    with torch.no_grad():
        pred = model(x_val)
        val_loss = loss_fn(pred, y_val).item()
        acc = (pred.argmax(1) == y_val).float().mean().item()
    print(f"[{epoch + 1:2d}] loss {running / count:.4f} val_loss {val_loss:.4f} val_acc {acc:.3f}")
