"""Fits the kernel of an exact Gaussian process to tide gauges by its marginal likelihood."""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "five numbers are trained by eight LBFGS steps in float64 on one batch of all rows, the loss "
    "falls below zero and there is no prediction in it: that is how GP kernels are fitted"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


def tide(n: int):
    hour = torch.rand(n).sort().values * 72
    height = torch.sin(2 * math.pi * hour / 12.4) + 0.4 * torch.sin(2 * math.pi * hour / 24.0)
    surge = 0.5 * torch.exp(-(((hour - 40) / 6) ** 2))
    return hour, height + surge + 0.05 * torch.randn(n)


class TideKernel(nn.Module):
    def __init__(self):
        super().__init__()
        start = {"scale": 1.0, "length": 10.0, "period": 12.0, "roughness": 1.0, "noise": 0.1}
        self.log = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(math.log(value))) for name, value in start.items()}
        )

    def value(self, name):
        return self.log[name].exp()

    def forward(self, a, b):
        gap = a.unsqueeze(1) - b.unsqueeze(0)
        turn = torch.sin(math.pi * gap / self.value("period")) / self.value("roughness")
        slow = gap / self.value("length")
        return self.value("scale") ** 2 * torch.exp(-2 * turn**2 - 0.5 * slow**2)

    def cholesky(self, hour):
        noise = self.value("noise") ** 2 + 1e-8
        return torch.linalg.cholesky(self(hour, hour) + noise * torch.eye(len(hour)))

    def negative_log_evidence(self, hour, height):
        factor = self.cholesky(hour)
        solved = torch.cholesky_solve(height.unsqueeze(1), factor).squeeze(1)
        volume = factor.diagonal().log().sum()
        return (0.5 * height @ solved + volume) / len(hour) + 0.5 * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, hour, height, new):
        factor = self.cholesky(hour)
        across = self(new, hour)
        mean = across @ torch.cholesky_solve(height.unsqueeze(1), factor).squeeze(1)
        known = torch.linalg.solve_triangular(factor, across.T, upper=False).square().sum(0)
        return mean, (self.value("scale") ** 2 - known + self.value("noise") ** 2).sqrt()


hour, height = tide(400)
held_out = torch.randperm(400)[:100]
kept = torch.ones(400, dtype=torch.bool).index_fill(0, held_out, False)
average = height[kept].mean()
seen, seen_height = hour[kept], height[kept] - average
new, new_height = hour[held_out], height[held_out] - average

kernel = TideKernel()
optimizer = torch.optim.LBFGS(
    kernel.parameters(), lr=1.0, max_iter=4, history_size=10, line_search_fn="strong_wolfe"
)


def closure():
    optimizer.zero_grad()
    loss = kernel.negative_log_evidence(seen, seen_height)
    loss.backward()
    return loss


for step in range(8):
    loss = optimizer.step(closure)
    if step % 2 == 1:
        print(f"step {step + 1}: negative log evidence per gauge {loss.item():.4f}")

mean, spread = kernel.predict(seen, seen_height, new)
error = (mean - new_height).square().mean().sqrt()
inside = ((mean - new_height).abs() < 1.96 * spread).double().mean()
print({name: round(kernel.value(name).item(), 3) for name in kernel.log})
print(
    f"held-out error {error:.4f} (noise 0.05), of the mean {new_height.std():.4f}; "
    f"in the 95% band {inside:.2f}"
)
