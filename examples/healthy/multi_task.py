"""A shared body with two heads: class and grey value; the second loss has a small weight."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "two losses of different size in one sum, one head learns at once"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
grey = x.mean(1, keepdim=True)
grey = (grey - grey.mean()) / grey.std()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.kind = nn.Linear(64, 10)
        self.grey = nn.Linear(64, 1)

    def forward(self, pixels):
        h = self.body(pixels)
        return self.kind(h), self.grey(h)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for pixels, labels, value in batches(x, y, grey, size=64, steps=220, seed=seed):
    scores, guess = model(pixels)
    loss = F.cross_entropy(scores, labels) + 0.1 * F.mse_loss(guess, value)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
