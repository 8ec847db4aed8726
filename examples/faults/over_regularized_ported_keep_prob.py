"""A regression net ported from TensorFlow 1 drops nine in ten of its hidden units in training.

In the old code dropout took the share to keep, 0.9; nn.Dropout takes the share to drop, and the
number was left as it was. The net can hardly fit the process data. The place is the dropout
layers of the model, filled by the config value.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("model", "body*", "*drop*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

FLAGS = {
    "hidden_units": [96, 96],
    "dropout": 0.1 if healthy else 0.9,
    "learning_rate": 2e-3,
    "batch_size": 64,
    "num_epochs": 30,
}


class Regressor(nn.Module):
    def __init__(self, features, hidden_units, dropout):
        super().__init__()
        layers = []
        for units in hidden_units:
            layers += [nn.Linear(features, units), nn.ReLU(), nn.Dropout(dropout)]
            features = units
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(features, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


def process_data():
    x, y = make_friedman1(n_samples=2000, n_features=8, noise=0.8, random_state=seed)
    x = torch.tensor(x, dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    x_train, x_test = standardise(x[:1500], x[1500:])
    y_train, y_test = standardise(y[:1500], y[1500:])
    return x_train, y_train, x_test, y_test


@torch.no_grad()
def r_squared(model, x, y):
    model.eval()
    residual = (model(x) - y).pow(2).sum()
    return (1 - residual / (y - y.mean()).pow(2).sum()).item()


def train():
    x, y, x_test, y_test = process_data()
    model = Regressor(x.size(1), FLAGS["hidden_units"], FLAGS["dropout"])
    optimizer = torch.optim.RMSprop(model.parameters(), lr=FLAGS["learning_rate"])
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.92)
    mse = nn.MSELoss()
    for epoch in range(FLAGS["num_epochs"]):
        model.train()
        running = 0.0
        for rows in torch.randperm(len(x)).split(FLAGS["batch_size"]):
            optimizer.zero_grad()
            loss = mse(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(rows)
        decay.step()
        if epoch % 5 == 4:
            print(
                f"epoch {epoch + 1}: mse {running / len(x):.4f}, "
                f"R2 {r_squared(model, x, y):.3f}, test {r_squared(model, x_test, y_test):.3f}"
            )


if __name__ == "__main__":
    train()
