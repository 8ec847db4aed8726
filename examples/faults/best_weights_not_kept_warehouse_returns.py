"""Which articles of a warehouse will be sent back; the weights kept as the best are the last ones.

The helper for early stopping stores model.state_dict() when the validation improves. That is a
dictionary of the living tensors, not a copy: the optimizer goes on changing them in place. When the
helper puts "the best" back, nothing happens, and the over-trained last state is delivered.
The place is the loop: what is kept at the best validation.
The twin stores a deep copy.
"""

import copy

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False


class EarlyStopping:
    """Stops when the validation loss has not improved for `patience` epochs."""

    def __init__(self, patience=10, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.counter = 0
        self.best_loss = float("inf")
        self.best_epoch = -1
        self.best_state = None

    def __call__(self, epoch, val_loss, model):
        if val_loss < self.best_loss - self.min_delta:
            self.best_loss = val_loss
            self.best_epoch = epoch
            state = model.state_dict()
            self.best_state = copy.deepcopy(state) if healthy else state
            self.counter = 0
        else:
            self.counter += 1
        return self.counter >= self.patience

    def restore(self, model):
        model.load_state_dict(self.best_state)


def articles(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 24)).astype(np.float32)
    score = 1.2 * x[:, 0] - x[:, 1] + 0.8 * x[:, 2] * x[:, 3] + 0.7 * np.abs(x[:, 4]) - 0.5
    sent_back = rng.random(n) < 1 / (1 + np.exp(-1.5 * score))
    return torch.from_numpy(x), torch.from_numpy(sent_back.astype(np.float32))


def bce(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y).item()


def main():
    x, y = articles(5000, seed)
    x_val, y_val, x_test, y_test = x[900:2200], y[900:2200], x[2200:], y[2200:]
    loader = DataLoader(TensorDataset(x[:900], y[:900]), batch_size=32, shuffle=True)

    model = nn.Sequential(
        nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    stopper = EarlyStopping(patience=10)
    for epoch in range(60):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        val_loss = bce(model, x_val, y_val)
        if epoch % 4 == 0:
            print(f"epoch {epoch:2d}: train {total / len(loader):.4f} val {val_loss:.4f}")
        if stopper(epoch, val_loss, model):
            print(f"no better for {stopper.patience} epochs, stopping at epoch {epoch}")
            break

    stopper.restore(model)
    print(
        f"best epoch {stopper.best_epoch} (val {stopper.best_loss:.4f}); "
        f"delivered: val {bce(model, x_val, y_val):.4f} test {bce(model, x_test, y_test):.4f}"
    )


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    main()
