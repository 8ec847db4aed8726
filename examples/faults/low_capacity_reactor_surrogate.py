"""A surrogate of a chemical reactor's yield over eight settings whose hidden layers have two units,
because the width is the number of settings over four.

The yield has ridges and interactions that two units cannot represent: the training error stays as
high as the validation error and both stop falling early. The place is the model, its hidden width.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("model", "net*", "[0-9]*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SETTINGS, RUNS, EPOCHS = 8, 2400, 50


def reactor(count):
    x = torch.rand(count, SETTINGS) * 2 - 1
    best_heat = 0.5 * torch.sin(2 * x[:, 1]) + 0.2 * x[:, 2]
    conversion = torch.exp(-4 * (x[:, 0] - best_heat) ** 2)
    mixing = torch.tanh(2 * x[:, 3] * x[:, 4])
    poisoning = torch.relu(x[:, 5] + x[:, 6]) * (1 - x[:, 7]) * 0.5
    amount = 3 * conversion + 1.2 * mixing - 1.5 * poisoning
    return x, (amount + 0.1 * torch.randn(count)).unsqueeze(1)


def main():
    x, amount = reactor(RUNS)
    train, val = slice(0, 1900), slice(1900, RUNS)
    x = (x - x[train].mean(0)) / x[train].std(0)
    amount = (amount - amount[train].mean()) / amount[train].std()
    width = SETTINGS * 8 if healthy else SETTINGS // 4
    net = nn.Sequential(
        nn.Linear(SETTINGS, width), nn.GELU(),
        nn.Linear(width, width), nn.GELU(),
        nn.Linear(width, 1),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=EPOCHS * 19)
    for epoch in range(EPOCHS):
        net.train()
        total = 0.0
        for rows in torch.randperm(1900).split(100):
            loss = nn.functional.mse_loss(net(x[rows]), amount[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() / 19
        if epoch % 5 == 4:
            net.eval()
            with torch.no_grad():
                error = nn.functional.mse_loss(net(x[val]), amount[val]).item()
            print(
                f"epoch {epoch + 1:2d} train {total:.3f} validation {error:.3f} R2 {1 - error:.3f}"
            )


main()
