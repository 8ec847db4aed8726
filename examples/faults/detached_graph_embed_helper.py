"""A world model for a rolling ball seen by a camera; the encoder never learns because it is called
through a no_grad helper.

embed() was written for the replay cache and has @torch.no_grad(). The user calls it in the
training too ("it does just what I need"), so that the encoder stays as it was made, while the
dynamics and the decoder of positions learn on top of random features. The place is the encoder.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

RES, HORIZON = 16, 4


class Table:
    """A ball on a table with walls, pushed by an agent; observed as a noisy picture with a shadow."""  # noqa: E501

    def __init__(self):
        lin = torch.linspace(-1, 1, RES)
        self.yy, self.xx = torch.meshgrid(lin, lin, indexing="ij")

    def render(self, pos):
        x, y = pos[..., 0, None, None], pos[..., 1, None, None]
        ball = torch.exp(-((self.xx - x) ** 2 + (self.yy - y) ** 2) / 0.03)
        shadow = torch.exp(-((self.xx - x - 0.25) ** 2 + (self.yy - y - 0.15) ** 2) / 0.05)
        texture = 0.4 * torch.sin(9 * self.xx + 4 * self.yy)
        shape = (*pos.shape[:-1], RES, RES)
        lamp = 1 + 0.2 * torch.randn(*pos.shape[:-1], 1, 1)
        return lamp * (ball - 0.5 * shadow + texture) + 0.15 * torch.randn(shape)

    def rollouts(self, n):
        pos, vel = torch.rand(n, 2) * 1.4 - 0.7, 0.15 * torch.randn(n, 2)
        places, pushes = [pos], []
        for _ in range(HORIZON):
            a = 0.12 * torch.randn(n, 2)
            vel = 0.9 * vel + a
            new = pos + vel
            hit = new.abs() > 0.85
            vel = torch.where(hit, -vel, vel)
            pos = torch.where(hit, pos, new)
            places.append(pos)
            pushes.append(a)
        places = torch.stack(places, 1)
        return self.render(places), torch.stack(pushes, 1), places


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 4, stride=2, padding=1)
        self.conv2 = nn.Conv2d(12, 16, 4, stride=2, padding=1)
        self.fc = nn.Linear(16 * 16, dim)

    def forward(self, img):
        h = F.elu(self.conv1(img.flatten(0, -3).unsqueeze(1)))
        h = self.fc(F.elu(self.conv2(h)).flatten(1))
        return h.view(*img.shape[:-2], -1)


class WorldModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.encoder = Encoder(dim)
        self.cell = nn.GRUCell(2, dim)
        self.position = nn.Sequential(nn.Linear(dim, 48), nn.ELU(), nn.Linear(48, 2))

    @torch.no_grad()
    def embed(self, img):
        """Latents for the replay cache."""
        return self.encoder(img)

    def loss(self, imgs, pushes, places):
        z = self.encoder(imgs[:, :2]) if healthy else self.embed(imgs[:, :2])
        h = torch.tanh(z[:, 0] + z[:, 1])
        errors = [
            F.mse_loss(self.position(z[:, 0]), places[:, 0]),
            F.mse_loss(self.position(z[:, 1]), places[:, 1]),
        ]
        for t in range(1, HORIZON):
            h = self.cell(pushes[:, t], h)
            errors.append(F.mse_loss(self.position(h), places[:, t + 1]))
        return torch.stack(errors).mean()


def main():
    table = Table()
    imgs, pushes, places = table.rollouts(4000)
    val = table.rollouts(400)
    model = WorldModel()
    params = [
        {"params": model.encoder.parameters(), "lr": 2e-3},
        {"params": [*model.cell.parameters(), *model.position.parameters()]},
    ]
    opt = torch.optim.Adam(params, lr=2e-3)
    print("parameters:", sum(p.numel() for p in model.parameters() if p.requires_grad))
    for step in range(1, 1001):
        rows = torch.randint(0, len(imgs), (64,))
        loss = model.loss(imgs[rows], pushes[rows], places[rows])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if step % 200 == 0:
            with torch.no_grad():
                print(
                    f"step {step}: train {loss.item():.4f}, val {model.loss(*val).item():.4f} (constant: {val[2].var().item():.4f})"  # noqa: E501
                )


if __name__ == "__main__":
    main()
