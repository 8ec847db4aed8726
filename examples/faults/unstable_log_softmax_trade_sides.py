"""Will the price rise, stay or fall? The log of a softmax is taken by hand, and there is log(0).

`-torch.log(probability)` with probability = softmax(scores) is right until a class is so unlikely
that its probability is 0 in float32. Its log is minus infinite, and the step after it NaN: here
sudden hours, with values of fifty spreads, bring it about.
The place is the loss. The twin uses log_softmax.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = False


class SideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 48)
        self.second = nn.Linear(48, 48)
        self.side = nn.Linear(48, 3)

    def forward(self, x):
        return self.side(self.second(self.first(x).relu()).relu())


def hours(n, g):
    x = torch.randn(n, 12, generator=g)
    sudden = torch.rand(n, generator=g) < 0.02
    x[sudden] *= 25
    drift = x[:, :4].sum(1) / 2 - 0.5 * x[:, 4] + 0.7 * torch.randn(n, generator=g)
    flip = sudden & (torch.rand(n, generator=g) < 0.3)
    drift[flip] = -drift[flip]
    return x, 1 + (drift > 0.6).long() - (drift < -0.6).long()


def nll(scores, side, stable):
    if stable:  # noqa: SIM108
        log_probability = scores.log_softmax(1)
    else:
        log_probability = torch.log(scores.softmax(1))
    return -log_probability.gather(1, side.unsqueeze(1)).mean()


def main():
    healthy, seed = arguments(__doc__)
    x, y = hours(3000, torch.Generator().manual_seed(seed))
    loader = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=60, shuffle=True)
    model = SideNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        total = 0.0
        for xb, yb in loader:
            loss = nll(model(xb), yb, stable=healthy)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() / len(loader)
        with torch.no_grad():
            right = (model(x[2400:]).argmax(1) == y[2400:]).float().mean().item()
        print(f"epoch {epoch}: loss {total:.3f} validation {right:.3f}")


if __name__ == "__main__":
    main()
