"""A linear probe reads what a self-trained body knows of digits; the body is frozen on purpose.

The body first learns without labels to fill in hidden pixels. Then its parameters keep
requires_grad False, get no gradient and never change, and only the last layer is trained: that is
what a probe is, and it comes near the accuracy of a net trained whole.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = "most parameters are frozen, get no gradient and are in no optimizer; that is what a probe is"
_, seed = arguments(__doc__)


def make_body():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.ReLU(),
    )


def hide_pixels(x, share=0.4):
    hidden = torch.rand_like(x) < share
    return x.masked_fill(hidden, 0.0), hidden


def learn_to_fill_in(body, x, epochs=8):
    fill = nn.Conv2d(32, 1, 3, padding=1)
    optimizer = torch.optim.Adam([*body.parameters(), *fill.parameters()], lr=2e-3)
    for _ in range(epochs):
        losses = []
        for rows in torch.randperm(len(x)).split(64):
            shown, hidden = hide_pixels(x[rows])
            loss = (fill(body(shown)) - x[rows])[hidden].pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    print(f"filling in: squared error {sum(losses) / len(losses):.3f} of a variance of 1")


class Probe(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.eval().requires_grad_(False)
        self.linear = nn.Linear(32 * 16, 10)

    def forward(self, x):
        with torch.no_grad():
            features = F.avg_pool2d(self.body(x), 2).flatten(1)
        return self.linear(features)


def main():
    x, y, x_val, y_val = images(seed)
    body = make_body()
    learn_to_fill_in(body, x)
    probe = Probe(body)
    trained = sum(p.numel() for p in probe.parameters() if p.requires_grad)
    print(f"{trained} of {sum(p.numel() for p in probe.parameters())} parameters are trained")
    optimizer = torch.optim.Adam(probe.linear.parameters(), lr=3e-3)
    for epoch in range(20):
        total = 0.0
        for rows in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(probe(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        with torch.no_grad():
            scores = probe(x_val)
        if epoch % 3 == 1:
            print(
                f"epoch {epoch + 1:2d} loss {total / len(x):.3f} "
                f"val loss {F.cross_entropy(scores, y_val).item():.3f} "
                f"accuracy {(scores.argmax(1) == y_val).float().mean().item():.3f}"
            )


main()
