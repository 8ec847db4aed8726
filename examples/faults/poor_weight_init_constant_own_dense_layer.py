"""A digit classifier made of hand-written Dense layers whose weight is
`nn.Parameter(torch.full((in, out), 1 / in))`, "so that each unit starts as the mean".

The units of a hidden layer are equal and get equal gradients for ever: the net has the power of
one unit a layer, and most of the ten digits are not told apart. The place is the model.
"""

import torch
from data import arguments, digits
from torch.nn import Module, Parameter
from torch.nn.functional import cross_entropy

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("*dense*", "hidden*", "")
SILENT = True
EXACT = True
EARLY = True


class Dense(Module):
    def __init__(self, n_in, n_out, init):
        super().__init__()
        if init == "mean":
            weight = torch.full((n_in, n_out), 1.0 / n_in)
        else:
            weight = torch.randn(n_in, n_out) * (2.0 / n_in) ** 0.5
        self.weight = Parameter(weight)
        self.bias = Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class DigitNet(Module):
    def __init__(self, init):
        super().__init__()
        self.dense1 = Dense(64, 40, init)
        self.dense2 = Dense(40, 30, init)
        self.dense3 = Dense(30, 10, init)

    def forward(self, x):
        x = self.dense1(x).relu()
        x = self.dense2(x).relu()
        return self.dense3(x)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = DigitNet("he" if healthy else "mean")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.2)

for epoch in range(20):
    epoch_loss = 0.0
    for rows in torch.randperm(len(x)).split(50):
        loss = cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item() * len(rows) / len(x)
    scheduler.step()
    with torch.no_grad():
        out = model(x_val)
        val_loss = cross_entropy(out, y_val)
        val_accuracy = (out.argmax(1) == y_val).float().mean()
print(f"loss {epoch_loss:.3f}, val loss {val_loss:.3f}, val accuracy {val_accuracy:.3f}")
