"""Learns the parity of three hidden bits among twenty-four; nothing seems to happen for long.

No single bit tells anything about a parity, so the first gradients are faint and the loss stays at
log 2 for some hundred steps; once the three bits stand out, accuracy jumps to one. The batches are
drawn anew, and the held-out rows are judged on the way.
"""

import torch
from data import arguments
from torch import nn

ODD = "a long plateau at log 2, then a sudden drop: parity gives hardly any gradient at first"
_, seed = arguments(__doc__)

BITS, SECRET = 24, (2, 7, 11)
config = {"width": 128, "lr": 0.05, "momentum": 0.9, "batch": 64, "steps": 2500, "every": 125}


def rows(count):
    bits = torch.randint(0, 2, (count, BITS)).float() * 2 - 1
    return bits, (bits[:, SECRET].prod(1) > 0).float()


class Parity(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(BITS, width)
        self.out = nn.Linear(width, 1)

    def forward(self, bits):
        return self.out(torch.relu(self.hidden(bits))).squeeze(1)


def held_out(model, bits, parity):
    model.eval()
    with torch.no_grad():
        accuracy = ((model(bits) > 0) == (parity > 0.5)).float().mean().item()
    model.train()
    return accuracy


def main():
    val_bits, val_parity = rows(1000)
    model = Parity(config["width"])
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=config["lr"], momentum=config["momentum"], weight_decay=1e-4
    )
    print(f"log 2 is 0.693; {sum(p.numel() for p in model.parameters())} parameters")
    average = None
    for step in range(1, config["steps"] + 1):
        bits, parity = rows(config["batch"])
        loss = criterion(model(bits), parity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        if step % config["every"] == 0:
            accuracy = held_out(model, val_bits, val_parity)
            print(f"step {step:4d}  loss {average:.4f}  held-out accuracy {accuracy:.3f}")


main()
