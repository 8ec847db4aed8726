"""Predicts how far diabetes has gone a year later; the training goes on long after the patients
are known by heart.

Training is to stop when the error hasn't improved for some epochs, but it is the error on the
training patients that is watched, and with so many weights that one always improves a little. So
the run uses all its epochs and the error on other patients rises.
The place is the rule that stops the training, and the model, which can learn each patient.
The twin watches the validation error and takes back the best weights.
"""

import copy

import torch
from data import arguments, diabetes
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "model", "net")
SILENT = True
EXACT = False
EARLY = False


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best, self.waited, self.weights = float("inf"), 0, None

    def stop(self, error, model):
        if error < self.best:
            self.best, self.waited = error, 0
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = diabetes(seed)
    net = nn.Sequential(
        nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)
    mse = nn.MSELoss()
    stopping = EarlyStopping(patience=25)

    for epoch in range(120):
        net.train()
        train_error = 0.0
        for rows in torch.randperm(len(x)).split(32):
            loss = mse(net(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_error += loss.item() * len(rows) / len(x)
        net.eval()
        with torch.no_grad():
            val_error = mse(net(x_val).squeeze(1), y_val).item()
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}  train {train_error:.4f}  val {val_error:.4f}")
        if stopping.stop(val_error if healthy else train_error, net):
            print(f"stopped after epoch {epoch}")
            break

    net.load_state_dict(stopping.weights)
    with torch.no_grad():
        print(f"final val error {mse(net(x_val).squeeze(1), y_val).item():.4f}")


main()
