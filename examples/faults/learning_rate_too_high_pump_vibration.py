"""State of a pump from its vibration; Adam runs with the learning rate of Adadelta.

The example it began from had Adadelta with 1.0; when the optimizer was exchanged the number
stayed. For Adam it is hundreds of times too much: the loss leaps about and remains near that of
guessing.
The place is the optimizer.
The twin uses 0.003.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
cfg = {
    "hidden": 32,
    "batch_size": 40,
    "epochs": 10,
    "optimizer": {"name": "Adam", "lr": 0.003 if healthy else 1.0},
}


class PumpNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, hidden, 7, padding=3),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(hidden, hidden, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(hidden, hidden, 5, padding=2),
            nn.ReLU(),
        )
        self.fc = nn.Linear(hidden, 3)

    def forward(self, x):
        return self.fc(self.conv(x.transpose(1, 2)).mean(dim=2))


def make_optimizer(model, name, lr):
    return getattr(torch.optim, name)(model.parameters(), lr=lr)


def run(cfg):
    x, y = waves(seed, n=1000)
    train = TensorDataset(x[:800], y[:800])
    loader = DataLoader(train, batch_size=cfg["batch_size"], shuffle=True)
    model = PumpNet(cfg["hidden"])
    optimizer = make_optimizer(model, **cfg["optimizer"])
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(cfg["epochs"]):
        model.train()
        losses = []
        for xb, yb in loader:
            loss = loss_fn(model(xb), yb)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.inference_mode():
            acc = (model(x[800:]).argmax(-1) == y[800:]).float().mean()
        print(f"ep {epoch:02d} loss={sum(losses) / len(losses):.3f} val_acc={acc:.3f}")


run(cfg)
