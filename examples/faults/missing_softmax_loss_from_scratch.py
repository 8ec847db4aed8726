"""A wine net feeds raw scores to the clipped cross entropy of a from-scratch course.

The person had written the loss of the course (clip to between 0 and 1, take the true class, minus
the logarithm); there the last layer was a softmax. A plain score of one or more costs nothing even
if all others are higher, and one below zero is clipped and gets no gradient. The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "output*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GROWERS = 6
MEASUREMENTS = 10


class LossCategoricalCrossentropy:
    def calculate(self, output, y):
        return self.forward(output, y).mean()

    def forward(self, y_pred, y_true):
        y_pred_clipped = torch.clamp(y_pred, 1e-7, 1 - 1e-7)
        correct_confidences = y_pred_clipped[range(len(y_pred)), y_true]
        return -torch.log(correct_confidences)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense1 = nn.Linear(MEASUREMENTS, 64)
        self.dense2 = nn.Linear(64, 64)
        self.output = nn.Linear(64, GROWERS)
        self.activation = nn.ReLU()
        self.last = nn.Softmax(dim=1) if healthy else nn.Identity()

    def forward(self, x):
        x = self.activation(self.dense1(x))
        x = self.activation(self.dense2(x))
        return self.last(self.output(x))


def wines():
    centres = np.random.default_rng(8 + seed).normal(0, 2.2, (3 * GROWERS, MEASUREMENTS))
    x, cluster = make_blobs(2400, centers=centres, cluster_std=1.6, random_state=seed)
    x_train, x_test, y_train, y_test = train_test_split(
        x, cluster % GROWERS, test_size=0.25, random_state=seed
    )
    mean, std = x_train.mean(0), x_train.std(0)
    x_train, x_test = ((part - mean) / std for part in (x_train, x_test))
    return (
        torch.tensor(x_train, dtype=torch.float32),
        torch.tensor(y_train),
        torch.tensor(x_test, dtype=torch.float32),
        torch.tensor(y_test),
    )


def accuracy(output, y):
    return (output.argmax(1) == y).float().mean().item()


X, y, X_test, y_test = wines()
model = Model()
loss_function = LossCategoricalCrossentropy()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
BATCH_SIZE = 60

for epoch in range(1, 14):
    model.train()
    order = torch.randperm(len(X))
    epoch_loss, epoch_acc = [], []
    for start in range(0, len(X), BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        output = model(X[rows])
        loss = loss_function.calculate(output, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss.append(loss.item())
        epoch_acc.append(accuracy(output, y[rows]))
    model.eval()
    with torch.no_grad():
        output = model(X_test)
        test_loss = loss_function.calculate(output, y_test).item()
    print(
        f"epoch: {epoch}, acc: {np.mean(epoch_acc):.3f}, loss: {np.mean(epoch_loss):.4f},"
        f" validation acc: {accuracy(output, y_test):.3f}, loss: {test_loss:.4f}"
    )
