"""A graph network averages its neighbours with numpy, so nothing before the averaging is trained.

`h.detach().numpy()` was the fix for "Can't call numpy() on Tensor that requires grad". The encoder
gets no gradient and stays as it was drawn; the classifier has only random features to read. The
place is the encoder, whose output is cut off.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("encoder*", "")
SILENT = True
EXACT = True
EARLY = True


def make_graph(n, degree=10):
    kind = torch.randint(0, 2, (n,))
    first = torch.randn(n)
    second = first * (2 * kind - 1) + 0.3 * torch.randn(n)
    x = torch.cat([first[:, None], second[:, None], torch.randn(n, 6)], 1)
    mates = [torch.nonzero(kind == k)[:, 0] for k in (0, 1)]
    neighbours = torch.empty(n, degree, dtype=torch.long)
    for i in range(n):
        same = mates[int(kind[i])]
        neighbours[i] = same[torch.randint(len(same), (degree,))]
    strangers = torch.rand(n, degree) < 0.3
    neighbours[strangers] = torch.randint(n, (int(strangers.sum()),))
    return x, neighbours, kind


class MeanNeighbourNet(nn.Module):
    def __init__(self, in_size, width, use_numpy):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(in_size, width), nn.ReLU())
        self.classifier = nn.Linear(width, 2)
        self.use_numpy = use_numpy

    def gather(self, h, neighbours):
        if self.use_numpy:
            table = h.detach().numpy()
            return torch.from_numpy(np.take(table, neighbours.numpy(), axis=0).mean(1))
        return h[neighbours].mean(1)

    def forward(self, x, neighbours):
        return self.classifier(self.gather(self.encoder(x), neighbours))


healthy, _ = arguments(__doc__)
x, neighbours, kind = make_graph(2000)
train = torch.zeros(2000, dtype=torch.bool)
train[:1400] = True

net = MeanNeighbourNet(8, 12, use_numpy=not healthy)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(250):
    opt.zero_grad()
    out = net(x, neighbours)
    loss = F.cross_entropy(out[train], kind[train])
    loss.backward()
    opt.step()
    if step % 50 == 49:
        right = (out.argmax(1) == kind)[~train].float().mean().item()
        print(f"step {step + 1} loss {loss.item():.3f} held-out accuracy {right:.3f}")
