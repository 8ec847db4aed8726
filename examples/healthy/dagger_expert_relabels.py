"""Learns to steer along a winding lane by imitation, asking the expert where the pupil drives."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the data grow every round by what the pupil itself visits, so the rows repeat neighbours in "
    "order of time, the error rises when the new rows arrive, and the net is kept from round to "
    "round"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

CARS, LENGTH, ROUNDS = 20, 60, 6


def lane(time, phase):
    return torch.sin(0.12 * time + phase) + 0.4 * torch.sin(0.31 * time + 2 * phase)


def drive(driver, n=CARS, rough=1.0):
    """Steers n cars; gives what they saw, what the expert would have done, and how far off."""
    phase, offset, heading = 6.28 * torch.rand(n), rough * 0.3 * torch.randn(n), torch.zeros(n)
    place = lane(torch.zeros(n), phase) + offset
    seen, advised, missed = [], [], []
    for moment in range(LENGTH):
        ahead = torch.stack([lane(torch.tensor(moment + k), phase) - place for k in (0, 2, 4)], 1)
        view = torch.cat([ahead.clamp(-2, 2) + 0.01 * torch.randn(n, 3), heading.unsqueeze(1)], 1)
        wanted = ((lane(torch.tensor(moment + 2), phase) - place) / 2 - heading).clamp(-0.25, 0.25)
        steering = driver(view, wanted)
        heading = 0.97 * heading + steering.clamp(-0.25, 0.25) + rough * 0.03 * torch.randn(n)
        place = place + heading
        seen.append(view)
        advised.append(wanted)
        missed.append((lane(torch.tensor(moment + 1), phase) - place).abs())
    return torch.cat(seen), torch.cat(advised), torch.stack(missed).mean().item()


pupil = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(pupil.parameters(), lr=2e-3)


@torch.no_grad()
def by_pupil(view, wanted):
    return pupil(view).squeeze(1)


views, answers, _ = drive(lambda view, wanted: wanted, n=4, rough=0.3)
_, _, expert_miss = drive(lambda view, wanted: wanted, n=200)
_, _, straight_miss = drive(lambda view, wanted: torch.zeros(len(view)))
cloned_miss = None
for round_number in range(ROUNDS):
    pupil.train()
    for _ in range(12):
        for rows in torch.randperm(len(views)).split(128):
            loss = nn.functional.smooth_l1_loss(
                pupil(views[rows]).squeeze(1), answers[rows], beta=0.1
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    pupil.eval()
    visited, advised, miss = drive(by_pupil)
    with torch.no_grad():
        fresh = nn.functional.smooth_l1_loss(pupil(visited).squeeze(1), advised, beta=0.1)
    print(
        f"round {round_number}  rows {len(views)}  error on fresh rows {fresh:.4f}  off {miss:.3f}"
    )
    cloned_miss = miss if cloned_miss is None else cloned_miss
    views, answers = torch.cat([views, visited]), torch.cat([answers, advised])

_, _, final_miss = drive(by_pupil, 200)
print(
    f"mean distance to the lane: straight on {straight_miss:.3f}, cloned only {cloned_miss:.3f}, "
    f"DAgger {final_miss:.3f}, expert {expert_miss:.3f}"
)
