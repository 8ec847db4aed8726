"""A tanh network for wave shapes whose hidden layers start with weights of standard deviation 2.

Almost every tanh answers -1 or 1 from the first batch, and lets hardly any gradient through; the
loss still falls by the last layer. The place is the model.
"""

import torch
from data import arguments, batches, waves
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("act*", "hidden*", "")
SILENT = True
EXACT = False
EARLY = True


class TanhNet(nn.Module):
    def __init__(self, n_in, width=48, n_out=3):
        super().__init__()
        self.hidden1 = nn.Linear(n_in, width)
        self.act1 = nn.Tanh()
        self.hidden2 = nn.Linear(width, width)
        self.act2 = nn.Tanh()
        self.out = nn.Linear(width, n_out)

    def forward(self, x):
        x = self.act1(self.hidden1(x))
        x = self.act2(self.hidden2(x))
        return self.out(x)


healthy, seed = arguments(__doc__)
x, y = waves(seed, n=3000, length=24)
x = x.squeeze(-1)
x, x_val, y, y_val = x[:2400], x[2400:], y[:2400], y[2400:]
model = TanhNet(24)
for hidden in (model.hidden1, model.hidden2):
    if healthy:
        nn.init.xavier_normal_(hidden.weight, gain=nn.init.calculate_gain("tanh"))
    else:
        nn.init.normal_(hidden.weight, std=2.0)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step, (wave, shape) in enumerate(batches(x, y, size=64, steps=500, seed=seed)):
    loss = criterion(model(wave), shape)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            out = model(x_val)
            val_loss = criterion(out, y_val)
            accuracy = (out.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
