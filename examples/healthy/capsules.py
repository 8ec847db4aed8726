"""A capsule network with three rounds of routing (the first two without gradient) and a margin
loss."""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = (
    "the votes are detached while routing, the output capsules' lengths are squashed into (0,"
    " 1), many samples have exactly no loss"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def squash(v):
    square = v.square().sum(-1, keepdim=True)
    return square / (1 + square) * v / (square + 1e-8).sqrt()


class CapsuleNet(nn.Module):
    def __init__(self, kinds=10, width=8):
        super().__init__()
        self.conv = nn.Conv2d(1, 24, 3, padding=1)
        self.primary = nn.Conv2d(24, 24, 3, stride=2, padding=1)  # 4 x 4 x 3 capsules of 8
        self.votes = nn.Parameter(0.1 * torch.randn(48, kinds, 8, width))

    def forward(self, pictures):
        h = self.primary(F.relu(self.conv(pictures)))
        u = squash(h.view(-1, 3, 8, 16).permute(0, 1, 3, 2).reshape(-1, 48, 8))
        u_hat = torch.einsum("bni,nkio->bnko", u, self.votes)
        fixed = u_hat.detach()
        b = torch.zeros(u_hat.shape[:3])
        for _ in range(2):
            v = squash((b.softmax(2).unsqueeze(-1) * fixed).sum(1))
            b = b + (fixed * v.unsqueeze(1)).sum(-1)
        v = squash((b.softmax(2).unsqueeze(-1) * u_hat).sum(1))
        return (v.square().sum(-1) + 1e-8).sqrt()


def margin_loss(length, kind):
    there = F.one_hot(kind, 10).float()
    loss = there * F.relu(0.9 - length).square() + 0.5 * (1 - there) * F.relu(length - 0.1).square()
    return loss.sum(1).mean()


model = CapsuleNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step, (pictures, kind) in enumerate(batches(x, y, size=48, steps=280, seed=seed)):
    optimizer.zero_grad()
    loss = margin_loss(model(pictures), kind)
    loss.backward()
    optimizer.step()
    if step % 28 == 27:
        with torch.no_grad():
            length = model(x_val)
            val, right = (
                margin_loss(length, y_val).item(),
                (length.argmax(1) == y_val).float().mean().item(),
            )
print(f"loss {loss.item():.4f}, validation loss {val:.4f}, accuracy {right:.3f}")
