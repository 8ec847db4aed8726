"""Twenty labelled curves are all there is; each batch is the whole set, newly shifted, scaled
and noised. The same rows come at each step on purpose.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

ODD = "each batch has the same twenty rows (augmented anew); the data are tiny for the net"

healthy, seed = arguments(__doc__)
T = torch.linspace(0, 1, 64)


def curves(n):
    y = torch.arange(n) % 2
    place = 0.25 + 0.5 * torch.rand(n, 1)
    one = torch.exp(-(((T - place) / 0.05) ** 2))
    two = torch.exp(-(((T - place + 0.1) / 0.04) ** 2)) + torch.exp(
        -(((T - place - 0.1) / 0.04) ** 2)
    )
    x = torch.where(y[:, None] == 0, one, two)
    return (x + 0.15 * torch.randn(n, 64)).unsqueeze(1), y


def augment(x):
    shift = torch.randint(-10, 11, (len(x), 1))
    rows = (torch.arange(64) + shift) % 64
    x = x.squeeze(1).gather(1, rows).unsqueeze(1)
    return x * (0.8 + 0.4 * torch.rand(len(x), 1, 1)) + 0.1 * torch.randn_like(x)


x, y = curves(20)
x_val, y_val = curves(400)
net = nn.Sequential(
    nn.Conv1d(1, 12, 9, padding=4),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(12, 16, 9, padding=4),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(1),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(16, 2),
)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
for step in range(1, 251):
    net.train()
    loss = F.cross_entropy(net(augment(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        net.eval()
        with torch.no_grad():
            out = net(x_val)
        accuracy = (out.argmax(1) == y_val).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, validation {F.cross_entropy(out, y_val):.4f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
