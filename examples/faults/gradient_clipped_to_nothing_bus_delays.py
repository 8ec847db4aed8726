"""Delays of buses at the next stop with a GRU; the gradients are clipped at a value of 1e-5.

The option is called `clip` and was for the norm; the new trainer calls clip_grad_value_ with what
the sweep had written there. With SGD each weight moves by at most rate times 1e-5 in a step.
The place is the loop and the optimizer. The twin clips the norm at 1.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True


class Delay(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.gru = nn.GRU(4, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1]).squeeze(1)


def trips(n, g):
    load = torch.rand(n, 16, generator=g)
    jam = torch.rand(n, 1, generator=g).expand(n, 16)
    lights = (torch.rand(n, 16, generator=g) < 0.4).float()
    delay = torch.zeros(n)
    seen = []
    for t in range(16):
        seen.append(delay)
        delay = (0.8 * delay + 1.2 * load[:, t] * jam[:, t] + 0.4 * lights[:, t] - 0.3).clamp(min=0)
    x = torch.stack([load * 3 - 1.5, jam * 3 - 1.5, lights * 2 - 1, torch.stack(seen, 1) - 1], -1)
    return x, (delay - delay.mean()) / delay.std()


class Trainer:
    def __init__(self, model, optimizer, clip):
        self.model, self.optimizer, self.clip = model, optimizer, clip

    def fit(self, loader, x_val, y_val, epochs):
        for epoch in range(epochs):
            total = sum(self.step(x, y) for x, y in loader)
            with torch.no_grad():
                val = nn.functional.mse_loss(self.model(x_val), y_val).item()
            if epoch % 3 == 2:
                print(f"epoch {epoch + 1}: {total / len(loader):.4f}, validation {val:.4f}")

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.clip(self.model.parameters())
        self.optimizer.step()
        return loss.item()


def main():
    healthy, seed = arguments(__doc__)
    x, y = trips(1500, torch.Generator().manual_seed(seed))
    loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=30, shuffle=True)
    model = Delay()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if healthy:
        clip = lambda weights: nn.utils.clip_grad_norm_(weights, 1.0)  # noqa: E731
    else:
        clip = lambda weights: nn.utils.clip_grad_value_(weights, 1e-5)  # noqa: E731
    Trainer(model, optimizer, clip).fit(loader, x[1200:], y[1200:], epochs=12)


if __name__ == "__main__":
    main()
