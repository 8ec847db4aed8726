"""Predicts the direction of the wind in an hour with a von Mises likelihood on the circle."""

import math

import numpy as np
import torch
from data import arguments, standardise
from torch import nn

ODD = (
    "the target jumps between -pi and pi and is not standardised, and the loss is near zero and in "
    "windy hours below it: directions are angles, and the density of an angle can be above one"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def weather(hours: int):
    rng = np.random.default_rng(seed)
    state, direction, speed = np.zeros((hours, 2)), np.zeros(hours), np.zeros(hours)
    state[0] = rng.normal(size=2)
    for t in range(1, hours):
        turn = 0.35 + 0.2 * np.sin(2 * np.pi * t / 24)
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        state[t] = 0.99 * rotation @ state[t - 1] + rng.normal(0, 0.2, 2)
    calm = np.hypot(*state.T)
    direction = np.angle(
        np.exp(1j * (np.arctan2(state[:, 1], state[:, 0]) + rng.vonmises(0, 4 + 30 * calm)))
    )
    speed = calm * rng.lognormal(0, 0.1, hours)
    hour = np.arange(hours)
    clock = np.stack([np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24)], 1)
    now = np.stack([np.sin(direction), np.cos(direction), speed], 1)
    x = np.concatenate([now[2:-1], now[1:-2], now[:-3], clock[3:]], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(direction[2:], dtype=torch.float32)


def negative_log_density(output, angle):
    sine, cosine, spread = output.unbind(1)
    kappa = nn.functional.softplus(spread) + 1e-3
    centre = torch.atan2(sine, cosine)
    log_bessel = torch.special.i0e(kappa).log() + kappa
    return (log_bessel + math.log(2 * math.pi) - kappa * torch.cos(angle - centre)).mean()


def degrees_apart(a, b):
    return torch.rad2deg(torch.atan2(torch.sin(a - b), torch.cos(a - b)).abs()).mean()


x, direction = weather(6000)
angle, last = direction[1:], direction[:-1]
border = 4500
x_train, x_val = standardise(x[:border], x[border:])
angle_train, angle_val = angle[:border], angle[border:]
model = nn.Sequential(
    nn.Linear(x.shape[1], 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 3)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(16):
    model.train()
    total = 0.0
    for rows in torch.randperm(border).split(64):
        optimizer.zero_grad()
        loss = negative_log_density(model(x_train[rows]), angle_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        output = model(x_val)
        val = negative_log_density(output, angle_val)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: train {total / border:.4f}, validation {val:.4f}")

error = degrees_apart(torch.atan2(output[:, 0], output[:, 1]), angle_val)
naive = degrees_apart(last[border:], angle_val)
print(
    f"mean error {error:.1f} degrees, as the hour before {naive:.1f}; "
    f"negative log-likelihood {val:.3f}, of the uniform circle {math.log(2 * math.pi):.3f}"
)
