"""Trains an MLP on made-up tabular data with zero_grad() between backward() and step().

The gradients are gone when the optimizer steps, so nothing is changed and the loss stays at its
first value. The accuracy is that of the random initial net. The twin calls zero_grad() first. The
place is the optimizer or the loop.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

table, label = make_classification(
    4000,
    20,
    n_informative=10,
    n_redundant=4,
    n_classes=4,
    flip_y=0.0,
    class_sep=1.2,
    random_state=seed,
)
x = torch.tensor(table, dtype=torch.float32)
y = torch.tensor(label)
x_train, x_test = standardise(x[:3000], x[3000:])
y_train, y_test = y[:3000], y[3000:]

net = nn.Sequential(
    nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4)
)
opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()


def train_step(xb, yb):
    net.train()
    if healthy:
        opt.zero_grad()
    loss = loss_fn(net(xb), yb)
    loss.backward()
    if not healthy:
        opt.zero_grad()
    opt.step()
    return loss.item()


def test():
    net.eval()
    with torch.no_grad():
        out = net(x_test)
    return loss_fn(out, y_test).item(), (out.argmax(1) == y_test).float().mean().item()


batch = 60
for epoch in range(16):
    perm = torch.randperm(len(x_train))
    losses = [
        train_step(x_train[perm[i : i + batch]], y_train[perm[i : i + batch]])
        for i in range(0, len(perm), batch)
    ]
    test_loss, acc = test()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} test {test_loss:.4f} acc {acc:.3f}")
