"""Sigmoids are "sharpened": nn.Sigmoid() of 50 times the sums, so that nearly all are 0 or 1.

The last layer learns on random bits (silent). The place are the gates.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("gate?", "fc?", "")
SILENT = True
EXACT = False
EARLY = True


class Gated(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.fc1, self.gate1 = nn.Linear(64, 40), nn.Sigmoid()
        self.fc2, self.gate2 = nn.Linear(40, 40), nn.Sigmoid()
        self.fc3 = nn.Linear(40, 10)
        self.temperature = temperature

    def forward(self, x):
        x = self.gate1(self.fc1(x) / self.temperature)
        x = self.gate2(self.fc2(x) / self.temperature)
        return self.fc3(x)


healthy, seed = arguments(__doc__)
data = load_digits()
x, x_val, y, y_val = train_test_split(data.data, data.target, random_state=seed)
x, x_val = (torch.tensor((part - 4.9) / 6, dtype=torch.float32) for part in (x, x_val))
y, y_val = torch.tensor(y), torch.tensor(y_val)
model = Gated(temperature=1.0 if healthy else 0.02)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(300):
    rows = torch.randint(0, len(x), (64,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
accuracy = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
