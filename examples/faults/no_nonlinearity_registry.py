"""Inverse dynamics of a two-link robot arm; the network is linear because its activation isn't
found in the registry.

The configuration says "SiLU", the registry knows "silu", and its default is nn.Identity ("for the
output layer"). So four linear layers follow one another. The place is the body of the network
(body.*).
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("body*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

ACTIVATIONS = {"relu": nn.ReLU, "silu": nn.SiLU, "tanh": nn.Tanh, "none": nn.Identity}


@dataclass
class Config:
    hidden: list = field(default_factory=lambda: [128, 128, 64])
    activation: str = "silu" if healthy else "SiLU"
    lr: float = 2e-3
    weight_decay: float = 1e-5
    batch_size: int = 128
    epochs: int = 40
    samples: int = 6000


def arm_torques(q, dq, ddq):
    """Rigid-body torques of a planar arm with a payload and some friction."""
    m1, m2, l1, l2, grav = 2.0, 1.5, 0.6, 0.5, 9.81
    c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
    a = (m1 + m2) * l1**2 + m2 * l2**2 + 2 * m2 * l1 * l2 * c2
    b = m2 * l2**2 + m2 * l1 * l2 * c2
    d = m2 * l2**2
    h = m2 * l1 * l2 * s2
    g1 = (m1 + m2) * grav * l1 * np.cos(q[:, 0]) + m2 * grav * l2 * np.cos(q.sum(1))
    g2 = m2 * grav * l2 * np.cos(q.sum(1))
    t1 = a * ddq[:, 0] + b * ddq[:, 1] - h * (2 * dq[:, 0] * dq[:, 1] + dq[:, 1] ** 2) + g1
    t2 = b * ddq[:, 0] + d * ddq[:, 1] + h * dq[:, 0] ** 2 + g2
    friction = 0.8 * np.tanh(8 * dq) + 0.3 * dq
    return np.stack([t1, t2], 1) + friction


class InverseDynamics(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        act = ACTIVATIONS.get(cfg.activation, nn.Identity)
        layers, width = [], 6
        for h in cfg.hidden:
            layers += [nn.Linear(width, h), act()]
            width = h
        self.body = nn.Sequential(*layers)
        self.torque = nn.Linear(width, 2)

    def forward(self, state):
        return self.torque(self.body(state))


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        rng = np.random.default_rng(seed)
        n = cfg.samples
        q = rng.uniform(-np.pi, np.pi, (n, 2))
        dq, ddq = rng.normal(0, 1.5, (n, 2)), rng.normal(0, 4, (n, 2))
        tau = arm_torques(q, dq, ddq)
        tau = tau + rng.normal(0, 0.2, tau.shape)
        x = torch.tensor(np.concatenate([q, dq, ddq], 1), dtype=torch.float32)
        y = torch.tensor(tau, dtype=torch.float32)
        cut = int(0.8 * n)
        self.x_mean, self.x_std = x[:cut].mean(0), x[:cut].std(0)
        self.y_mean, self.y_std = y[:cut].mean(0), y[:cut].std(0)
        x, y = (x - self.x_mean) / self.x_std, (y - self.y_mean) / self.y_std
        self.train_data, self.val_data = (x[:cut], y[:cut]), (x[cut:], y[cut:])
        self.model = InverseDynamics(cfg)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, cfg.epochs)

    def run_epoch(self):
        self.model.train()
        x, y = self.train_data
        losses = []
        for rows in torch.randperm(len(x)).split(self.cfg.batch_size):
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x[rows]), y[rows])
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.scheduler.step()
        return float(np.mean(losses))

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.val_data
        return nn.functional.mse_loss(self.model(x), y).item()

    def fit(self):
        for epoch in range(1, self.cfg.epochs + 1):
            train = self.run_epoch()
            val = self.validate()
            if epoch % 8 == 0:
                print(
                    f"epoch {epoch:3d} | train mse {train:.4f} | val mse {val:.4f} | val R2 {1 - val:.3f}"  # noqa: E501
                )


if __name__ == "__main__":
    Trainer(Config()).fit()
