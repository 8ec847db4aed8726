"""A home-made dense layer draws its weights from -0.2 to 0, and a ReLU follows inputs that are
never negative.

`(torch.rand(...) - 1)` was written where `(torch.rand(...) - 0.5) * 2` was meant. The pixels are
between 0 and 1, so every pre-activation is negative, all ReLUs are 0 on every image and only the
last bias learns: the loss stays at ln 10. The twin draws the weights symmetrically. The place is
`dense1`, `dense2`, `relu`, `dense1.weight` or `dense2.weight`.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("dense1", "dense2", "relu", "dense1.weight", "dense2.weight")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Dense(nn.Module):
    def __init__(self, inputs, outputs, scale=0.2):
        super().__init__()
        draw = torch.rand(outputs, inputs)
        draw = (draw - 0.5) * 2 if healthy else draw - 1
        self.weight = nn.Parameter(draw * scale)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight.t() + self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense1 = Dense(64, 64)
        self.dense2 = Dense(64, 48)
        self.relu = nn.ReLU()
        self.last = nn.Linear(48, 10)

    def forward(self, x):
        x = self.relu(self.dense1(x))
        x = self.relu(self.dense2(x))
        return self.last(x)


x_train, y_train, x_val, y_val = digits(seed, raw=True)
x_train, x_val = x_train / 16, x_val / 16
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
running = 0.0
for step, (xb, yb) in enumerate(batches(x_train, y_train, size=32, steps=900, seed=seed), 1):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(xb), yb)
    loss.backward()
    optimizer.step()
    running += loss.item()
    if step % 150 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"step {step}: train {running / 150:.4f} "
            f"val {criterion(out, y_val).item():.4f} acc {acc:.3f}"
        )
        running = 0.0
