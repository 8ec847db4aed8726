"""Layers made by hand, with nn.Parameter(torch.randn(n_in, n_out)): nothing divides by sqrt(n_in).

Values grow in each layer, and the first loss is far above ln 10. The place are the layers.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("saturated_activation",)
PLACE = ("dense?", "")
SILENT = False
EXACT = False
EARLY = True


class Dense(nn.Module):
    def __init__(self, n_in, n_out, scaled):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in, n_out) * ((2 / n_in) ** 0.5 if scaled else 1))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Network(nn.Module):
    def __init__(self, scaled):
        super().__init__()
        self.dense1 = Dense(64, 100, scaled)
        self.dense2 = Dense(100, 100, scaled)
        self.dense3 = Dense(100, 100, scaled)
        self.dense4 = Dense(100, 10, scaled)

    def forward(self, x):
        for layer in (self.dense1, self.dense2, self.dense3):
            x = torch.relu(layer(x))
        return self.dense4(x)


healthy, seed = arguments(__doc__)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32)
x = (x - x.mean()) / x.std()
y = torch.tensor(digits.target)
network = Network(scaled=healthy)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for step in range(300):
    batch = torch.randint(0, len(x), (64,))
    loss = nn.functional.cross_entropy(network(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
