"""Pressure-field surrogate in float16 autocast; the GradScaler starts at 1 and so scales nothing.

After an "inf" in an early run the user set `init_scale=1.0`; growth comes only every 2000 steps,
thus gradients of a mean over 64 x 400 cells, times the loss weight of the field term, fall below
what float16 can hold and become zeros on their way through the net. The place is the
loop/optimizer (GradScaler). The twin has the usual scale of 2**16.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("vanishing_gradient", "low_precision_updates_lost")
PLACE = ("loop", "optimizer", "loss", "encoder*", "decoder*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "grid": 20,
    "n_train": 1536,
    "n_val": 256,
    "batch_size": 64,
    "steps": 640,
    "lr": 3e-3,
    "warmup": 40,
    "weight_field": 0.0004,
    "weight_lift": 0.001,
    "amp_dtype": torch.float16,
    "init_scale": 2.0**16 if healthy else 1.0,
}


def make_fields(n: int, g: torch.Generator):
    """Potential flow past two cylinders: parameters -> pressure coefficient on a grid, and a lift proxy."""  # noqa: E501
    lin = torch.linspace(-2, 2, config["grid"])
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    p = torch.rand(n, 7, generator=g) * 2 - 1
    u = 1 + 0.3 * p[:, 0]
    alpha = 0.35 * p[:, 1]
    vx = (u * alpha.cos())[:, None, None] + torch.zeros(n, *xx.shape)
    vy = (u * alpha.sin())[:, None, None] + torch.zeros(n, *xx.shape)
    for cx, cy, r in (
        (-0.8 + 0.3 * p[:, 2], 0.4 * p[:, 3], 0.45),
        (0.8 + 0.0 * p[:, 2], 0.6 * p[:, 4], 0.35),
    ):
        dx, dy = xx - cx[:, None, None], yy - cy[:, None, None]
        d2 = (dx**2 + dy**2).clamp_min(r**2)
        gamma = 0.5 * p[:, 5 if r == 0.45 else 6][:, None, None]
        vx = vx - u[:, None, None] * r**2 * (dx**2 - dy**2) / d2**2 + gamma * dy / d2
        vy = vy - 2 * u[:, None, None] * r**2 * dx * dy / d2**2 - gamma * dx / d2
    cp = (1 - (vx**2 + vy**2) / u[:, None, None] ** 2).clamp(-4, 1)
    lift = cp[:, : config["grid"] // 2].mean((1, 2)) - cp[:, config["grid"] // 2 :].mean((1, 2))
    return p, cp.flatten(1), lift


class FieldNet(nn.Module):
    def __init__(self, n_in: int, cells: int, width: int = 128):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(n_in, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.decoder = nn.Linear(width, cells)
        self.lift = nn.Linear(width, 1)

    def forward(self, p):
        z = self.encoder(p)
        return self.decoder(z), self.lift(z).squeeze(1)


g = torch.Generator().manual_seed(seed)
p_train, f_train, l_train = make_fields(config["n_train"], g)
p_val, f_val, l_val = make_fields(config["n_val"], g)
f_mean, f_std, l_std = f_train.mean(0), f_train.std(), l_train.std()
f_train, f_val = (f_train - f_mean) / f_std, (f_val - f_mean) / f_std
l_train, l_val = l_train / l_std, l_val / l_std

net = FieldNet(7, f_train.shape[1])
optimizer = torch.optim.Adam(net.parameters(), lr=config["lr"])
scaler = torch.amp.GradScaler("cpu", init_scale=config["init_scale"], growth_interval=2000)


def lr_at(step: int) -> float:
    if step < config["warmup"]:
        return (step + 1) / config["warmup"]
    t = (step - config["warmup"]) / (config["steps"] - config["warmup"])
    return 0.05 + 0.475 * (1 + math.cos(math.pi * t))


schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_at)


def evaluate():
    net.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=config["amp_dtype"]):
        field, lift = net(p_val)
    field, lift = field.float(), lift.float()
    return ((field - f_val) ** 2).mean().item(), 1 - (
        ((lift - l_val) ** 2).mean() / l_val.var()
    ).item()


step, running = 0, 0.0
while step < config["steps"]:
    for rows in torch.randperm(len(p_train), generator=g).split(config["batch_size"]):
        net.train()
        with torch.autocast("cpu", dtype=config["amp_dtype"]):
            field, lift = net(p_train[rows])
            loss = config["weight_field"] * F.mse_loss(field, f_train[rows])
            loss = loss + config["weight_lift"] * F.mse_loss(lift, l_train[rows])
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        running = 0.95 * running + 0.05 * loss.item()
        step += 1
        if step % 80 == 0:
            mse, r2 = evaluate()
            print(
                f"step {step} loss {running:.6f} val field mse {mse:.4f} lift R2 {r2:.4f} scale {scaler.get_scale():g}"  # noqa: E501
            )
        if step == config["steps"]:
            break
