"""Learns how long deliveries take; every check of the error keeps its whole graph in a list.

Every other step the error on some fixed tours is taken and put into a list, from which a smoothed
curve is printed. What goes into the list is the tensor, with all the layers' results hanging on
it, and the memory grows until the long job on the server is killed.
The place is the loop: the list of errors.
The twin puts the plain number into the list.
"""

import resource

import torch
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def tours(n, generator):
    """Stops left, distance, hour, load, weather and traffic; minutes to the door, standardised."""
    stops = torch.randint(0, 12, (n,), generator=generator).float()
    distance = torch.rand(n, generator=generator) * 15
    hour = 7 + 12 * torch.rand(n, generator=generator)
    load, rain, traffic = torch.rand(3, n, generator=generator)
    speed = 28 - 9 * torch.exp(-((hour - 8.5) ** 2) / 2) - 8 * torch.exp(-((hour - 17) ** 2) / 3)
    minutes = stops * (3 + 2 * load) + 60 * distance / speed * (1 + 0.3 * rain + 0.4 * traffic)
    minutes = minutes + 3 * torch.randn(n, generator=generator)
    x = torch.stack([(stops - 5.5) / 3.5, (distance - 7.5) / 4.3, (hour - 13) / 3.5], 1)
    rest = torch.stack([load, rain, traffic], 1) * 3.4 - 1.7
    return torch.cat([x, rest], 1), ((minutes - 57) / 33)[:, None]


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    g = torch.Generator().manual_seed(seed)
    x, y = tours(8000, g)
    x_val, y_val = tours(2000, g)
    x_watch, y_watch = x_val[:500], y_val[:500]
    model = nn.Sequential(
        nn.Linear(6, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    errors, step, start = [], 0, megabytes()
    for _ in range(12):
        for rows in torch.randperm(len(x)).split(256):
            optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            step += 1
            if step % 2 == 0:
                error = nn.functional.smooth_l1_loss(model(x_watch), y_watch)
                errors.append(error.item() if healthy else error)
            if step % 75 == 0:
                smooth = sum(errors[-20:]) / 20
                print(f"step {step}: error {smooth:.4f}, {megabytes() - start:.0f} MB more")
    with torch.no_grad():
        off = 33 * (model(x_val) - y_val).abs().mean().item()
    print(f"validation: off by {off:.2f} minutes, {megabytes() - start:.0f} MB more than before")


main()
