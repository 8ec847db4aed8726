"""Predicts an illness from 331 patients with 530,000 weights, unregularised, for 100 epochs.

The training loss falls to almost 0. The validation loss is best in the second epoch and then grows
to about that of answering the mean. The place is the model and how long it trains. The twin is
small and has dropout and weight decay.
"""

import torch
from data import arguments, diabetes
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("model", "loop", "loss")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

LARGE = {"width": 512, "depth": 3, "dropout": 0.0, "weight_decay": 0.0, "epochs": 100}
SMALL = {"width": 24, "depth": 1, "dropout": 0.3, "weight_decay": 0.3, "epochs": 60}
setting = SMALL if healthy else LARGE


class Regressor(nn.Module):
    def __init__(self, n_features, width, depth, dropout):
        super().__init__()
        layers = []
        for _ in range(depth):
            layers += [nn.Linear(n_features, width), nn.ReLU(), nn.Dropout(dropout)]
            n_features = width
        self.layers = nn.Sequential(*layers)
        self.output = nn.Linear(width, 1)

    def forward(self, x):
        return self.output(self.layers(x)).view(-1)


class History:
    def __init__(self):
        self.train, self.valid = [], []

    def add(self, train_loss, valid_loss):
        self.train.append(train_loss)
        self.valid.append(valid_loss)

    def line(self, epoch):
        return (
            f"epoch {epoch:3d}  train {self.train[-1]:.4f}  valid {self.valid[-1]:.4f}  "
            f"(best {min(self.valid):.4f} in epoch {self.valid.index(min(self.valid)) + 1})"
        )


def r_squared(prediction, target):
    return 1 - ((prediction - target) ** 2).mean() / target.var(unbiased=False)


def main():
    x, y, x_val, y_val = diabetes(seed)
    model = Regressor(x.shape[1], setting["width"], setting["depth"], setting["dropout"])
    weights = sum(p.numel() for p in model.parameters())
    print(f"{len(x)} patients, {weights} weights")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=setting["weight_decay"])
    criterion = nn.MSELoss()
    history = History()
    for epoch in range(1, setting["epochs"] + 1):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = criterion(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            valid_loss = criterion(model(x_val), y_val).item()
        history.add(total / len(x), valid_loss)
        if epoch % 10 == 0:
            print(history.line(epoch))
    with torch.no_grad():
        train_r2, valid_r2 = r_squared(model(x), y), r_squared(model(x_val), y_val)
    print(f"explained: {train_r2:.1%} of training, {valid_r2:.1%} of validation")


if __name__ == "__main__":
    main()
