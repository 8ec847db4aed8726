"""A little AutoML trainer that guesses the task from the target's dtype; the class codes come as
floats.

The table was read from a CSV with one empty cell in the target column, so that the codes of the
six product families are 0.0 to 5.0. "Floating point, so a regression": one output and a squared
error over codes that have no order, rounded for the accuracy. The place is the loss. The twin's
column is cast to int64.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def read_products():
    x, codes = make_classification(
        n_samples=2400,
        n_features=20,
        n_informative=12,
        n_classes=6,
        n_clusters_per_class=2,
        class_sep=1.6,
        flip_y=0.01,
        random_state=seed,
    )
    return x.astype(np.float32), codes.astype(np.int64 if healthy else np.float64)


class AutoTabular:
    def __init__(self, hidden=96, epochs=15, lr=2e-3, batch_size=64):
        self.hidden, self.epochs, self.lr, self.batch_size = hidden, epochs, lr, batch_size

    def setup(self, x, y):
        self.regression = np.issubdtype(y.dtype, np.floating)
        outputs = 1 if self.regression else len(np.unique(y))
        self.loss = nn.MSELoss() if self.regression else nn.CrossEntropyLoss()
        self.net = nn.Sequential(
            nn.Linear(x.shape[1], self.hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(self.hidden, self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, outputs),
        )

    def outputs(self, x):
        out = self.net(x)
        return out.squeeze(1) if self.regression else out

    def fit(self, x, y, x_val, y_val):
        self.setup(x, y)
        x, x_val = standardise(torch.tensor(x), torch.tensor(x_val))
        dtype = torch.float32 if self.regression else torch.int64
        y, y_val = torch.tensor(y, dtype=dtype), torch.tensor(y_val, dtype=dtype)
        loader = DataLoader(TensorDataset(x, y), self.batch_size, shuffle=True)
        optimizer = torch.optim.AdamW(self.net.parameters(), lr=self.lr, weight_decay=1e-2)
        for epoch in range(self.epochs):
            self.net.train()
            for xb, yb in loader:
                loss = self.loss(self.outputs(xb), yb)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            self.net.eval()
            with torch.no_grad():
                out = self.outputs(x_val)
                val = self.loss(out, y_val)
                guess = out.round() if self.regression else out.argmax(1)
                accuracy = (guess == y_val).float().mean()
            print(
                f"epoch {epoch:2d} loss {loss.item():.3f} val {val:.3f} val accuracy {accuracy:.3f}"
            )


x, y = read_products()
x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, random_state=seed)
AutoTabular().fit(x, y, x_val, y_val)
