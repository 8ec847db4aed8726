"""Tells wave shapes apart with an echo state network: only the read-out learns."""

import torch
from data import arguments, waves
from torch import nn

ODD = "the recurrent weights are drawn once and never trained: that is how a reservoir works"


class Reservoir(nn.Module):
    def __init__(self, size=120, radius=0.9, leak=0.4):
        super().__init__()
        inner = torch.randn(size, size) * (torch.rand(size, size) < 0.1)
        inner = inner * radius / torch.linalg.eigvals(inner).abs().max()
        self.register_buffer("inner", inner)
        self.register_buffer("outer", 2 * torch.rand(1, size) - 1)
        self.leak = leak

    def forward(self, x):
        state = x.new_zeros(len(x), len(self.inner))
        states = []
        for t in range(x.shape[1]):
            new = torch.tanh(x[:, t] @ self.outer + state @ self.inner)
            state = (1 - self.leak) * state + self.leak * new
            states.append(state)
        states = torch.stack(states, 1)
        return torch.cat([states.mean(1), states.std(1), states.abs().mean(1)], 1)


_, seed = arguments(__doc__)
x, y = waves(seed)
reservoir = Reservoir()
with torch.no_grad():
    features = reservoir(x)
mean, std = features[:600].mean(0), features[:600].std(0)
features = (features - mean) / std
x, x_val, y, y_val = features[:600], features[600:], y[:600], y[600:]
readout = nn.Linear(x.shape[1], 3)
optimizer = torch.optim.SGD(readout.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-2)
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(30):
        loss = nn.functional.cross_entropy(readout(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            logits = readout(x_val)
        val = nn.functional.cross_entropy(logits, y_val).item()
        accuracy = (logits.argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} val {val:.3f} accuracy {accuracy:.3f}")
