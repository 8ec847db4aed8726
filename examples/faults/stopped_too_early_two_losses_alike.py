"""A tensor factorisation of reaction yields ends when two losses in a row differ by under a
hundredth, which they do while it learns slowly but well.

The person kept the convergence test of their old alternating least squares code: stop once the
loss changes by less than a hundredth from one iteration to the next. A step of Adam does less
than a whole sweep did, and the loop ends in the middle of the descent. The twin compares with the
loss of 150 iterations before. The place is the loop.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SHAPE = {"catalyst": 30, "solvent": 24, "temperature": 16}
RANK = 4


def measured_yields(rng):
    truth = [rng.normal(0, 1, (size, RANK)) for size in SHAPE.values()]
    full = np.einsum("ir,jr,kr->ijk", *truth)
    full = full / full.std()
    cells = np.stack(np.meshgrid(*[np.arange(size) for size in SHAPE.values()], indexing="ij"), -1)
    cells = cells.reshape(-1, 3)
    chosen = rng.permutation(len(cells))[:5000]
    cells = cells[chosen]
    values = full[tuple(cells.T)] + rng.normal(0, 0.15, len(cells))
    return torch.from_numpy(cells), torch.tensor(values, dtype=torch.float32)


class Factorisation(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.factors = nn.ParameterList(
            [nn.Parameter(0.1 * torch.randn(size, rank)) for size in SHAPE.values()]
        )
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, cells):
        rows = [factor[cells[:, mode]] for mode, factor in enumerate(self.factors)]
        return (rows[0] * rows[1] * rows[2]).sum(1) + self.offset


class Convergence:
    def __init__(self, tolerance, window, first=50):
        self.tolerance, self.window, self.first, self.history = tolerance, window, first, []

    def reached(self, loss):
        self.history.append(loss)
        if len(self.history) <= self.first + self.window:
            return False
        before = self.history[-1 - self.window]
        return abs(before - loss) < self.tolerance * before


class Solver:
    def __init__(self, model, convergence, penalty=1e-3, rate=0.01, most=2500):
        self.model, self.convergence, self.penalty, self.most = model, convergence, penalty, most
        self.optimizer = torch.optim.Adam(model.parameters(), lr=rate)

    def objective(self, cells, values):
        squares = (self.model(cells) - values).square().mean()
        weight = sum(factor.square().mean() for factor in self.model.factors)
        return squares + self.penalty * weight

    @torch.no_grad()
    def explained(self, cells, values):
        error = (self.model(cells) - values).square().mean()
        return (1 - error / values.var(unbiased=False)).item()

    def solve(self, measured, held_out):
        for iteration in range(1, self.most + 1):
            loss = self.objective(*measured)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if iteration % 50 == 0:
                print(
                    f"iteration {iteration:4d}  loss {loss.item():.5f}"
                    f"  held out {self.explained(*held_out):.4f}"
                )
            if self.convergence.reached(loss.item()):
                print(f"converged after {iteration} iterations")
                break
        print(
            f"explained: measured {self.explained(*measured):.4f}"
            f"  held out {self.explained(*held_out):.4f}"
        )


def main():
    cells, values = measured_yields(np.random.default_rng(900 + seed))
    measured, held_out = (cells[:4000], values[:4000]), (cells[4000:], values[4000:])
    window = 150 if healthy else 1
    solver = Solver(Factorisation(RANK + 2), Convergence(1e-2, window))
    solver.solve(measured, held_out)


main()
