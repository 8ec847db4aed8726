"""Ultrasound traces are deblurred by an unrolled gradient descent with learned denoisers; its
step is not divided by the Lipschitz constant, and the gradient explodes.

Ten iterations x - step * A'(Ax - y), each followed by a small network. The step starts at 1.0, as
in the paper, where the operator had norm one. Here its squared norm is far above 2, so that each
iteration makes the error several times larger. The place is the model: the iterations, their step.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high", "poor_weight_init")
PLACE = ("model", "step*", "denoisers*", "loss")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    length: int = 64
    traces: int = 1600
    iterations: int = 10
    channels: int = 12
    batch_size: int = 32
    epochs: int = 5
    lr: float = 2e-3


def blur_operator(length: int) -> Tensor:
    offset = torch.arange(-6, 7).float()
    pulse = torch.exp(-offset.square() / 8) * torch.cos(0.9 * offset)
    operator = torch.zeros(length, length)
    for i in range(length):
        for o, value in zip(offset.int().tolist(), pulse.tolist(), strict=True):
            if 0 <= i + o < length:
                operator[i, i + o] = value
    return operator


def reflectors(n: int, length: int, g: torch.Generator) -> Tensor:
    present = torch.rand(n, length, generator=g) < 0.07
    return present * torch.randn(n, length, generator=g)


class Denoiser(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, channels, 5, padding=2), nn.ReLU(), nn.Conv1d(channels, 1, 5, padding=2)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.3 * self.net(x.unsqueeze(1)).squeeze(1)


class UnrolledSolver(nn.Module):
    def __init__(self, operator: Tensor, cfg: Config):
        super().__init__()
        self.register_buffer("operator", operator)
        lipschitz = torch.linalg.matrix_norm(operator, 2).square().item() if healthy else 1.0
        self.step = nn.Parameter(torch.full((cfg.iterations,), 1.0 / lipschitz))
        self.denoisers = nn.ModuleList(Denoiser(cfg.channels) for _ in range(cfg.iterations))

    def forward(self, y: Tensor) -> Tensor:
        x = torch.zeros_like(y)
        for step, denoiser in zip(self.step, self.denoisers, strict=True):
            residual = x @ self.operator.T - y
            x = denoiser(x - step * (residual @ self.operator))
        return x


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(1600 + seed)
    operator = blur_operator(cfg.length)
    x = reflectors(cfg.traces + 300, cfg.length, g)
    y = x @ operator.T + 0.05 * torch.randn(len(x), cfg.length, generator=g)
    train = TensorDataset(y[: cfg.traces], x[: cfg.traces])
    x_val, y_val = x[cfg.traces :], y[cfg.traces :]
    model = UnrolledSolver(operator, cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    loader = DataLoader(train, batch_size=cfg.batch_size, shuffle=True)
    for epoch in range(cfg.epochs):
        model.train()
        losses, norms = [], []
        for yb, xb in loader:
            loss = nn.functional.mse_loss(model(yb), xb)
            optimizer.zero_grad()
            loss.backward()
            norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(y_val), x_val) / x_val.var()
        print(
            f"epoch {epoch + 1}  loss {sum(losses) / len(losses):.3e}  largest gradient "
            f"{max(norms):.2e}  unexplained share {val.item():.3e}"
        )


main()
