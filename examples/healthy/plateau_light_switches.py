"""Is the lamp on, by the parity of 3 of 20 switches? The loss lies flat for long, then falls.

No single switch and no pair says anything of the answer, so the loss stays at log(2) for hundreds
of steps: the gradient is faint until some hidden units happen to combine the right three; then it
grows by itself. The learning rate is right.
"""

import argparse
import math

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss lies flat at log(2) for hundreds of steps: "
    "there is next to no gradient before the three switches are found together"
)
_, seed = arguments(__doc__)

cfg = argparse.Namespace(
    switches=20, batch=128, hidden=128, lr=6e-4, weight_decay=0.02, steps=3000, every=200
)


class Wiring:
    """A stairwell lamp: three of the switches, which ones is not told, turn it on and off."""

    def __init__(self):
        self.connected = torch.randperm(cfg.switches)[:3]

    def sample(self, n):
        positions = torch.randint(0, 2, (n, cfg.switches))
        lit = positions[:, self.connected].sum(1) % 2
        return 2.0 * positions - 1, lit.float()


class SwitchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(cfg.switches, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, 1)
        )

    def forward(self, positions):
        return self.layers(positions).squeeze(1)


def check(model, positions, lit, criterion):
    model.eval()
    with torch.no_grad():
        logits = model(positions)
    accuracy = ((logits > 0) == (lit > 0.5)).float().mean().item()
    return criterion(logits, lit).item(), accuracy


def main():
    wiring = Wiring()
    model = SwitchNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, 3 * (1 - step / cfg.steps) + 0.05)
    )
    criterion = nn.BCEWithLogitsLoss()
    test_positions, test_lit = wiring.sample(1000)
    print(f"guessing costs {math.log(2):.4f}")
    window = []
    for step in range(1, cfg.steps + 1):
        model.train()
        positions, lit = wiring.sample(cfg.batch)
        loss = criterion(model(positions), lit)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        window.append(loss.item())
        if step % cfg.every == 0:
            test_loss, accuracy = check(model, test_positions, test_lit, criterion)
            print(
                f"| step {step:4d} | loss {sum(window) / len(window):.4f} | "
                f"test loss {test_loss:.4f} | test acc {accuracy:.3f} |"
            )
            window.clear()


if __name__ == "__main__":
    main()
