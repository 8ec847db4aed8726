"""Keeping count of the passengers on a train, with journeys that get longer from stage to stage.

A recurrent network adds up who gets on and off (noisy counts at the doors, a door type for each
coach). It is taught with journeys of four stops first, then of eight, then of sixteen. Each stage
begins with a higher loss than the one before ended with, as its journeys are harder.
"""

import torch
from data import arguments
from torch import nn

ODD = "the loss jumps up at the start of each stage, as the journeys get longer (a curriculum)"

_, seed = arguments(__doc__)

STAGES = [  # stops, steps, learning rate
    (4, 150, 5e-3),
    (8, 150, 3e-3),
    (16, 300, 2e-3),
]
BATCH = 64


def journeys(n, stops):
    """Counts at three doors (in and out), and how many tens of passengers are aboard after."""
    aboard = torch.zeros(n)
    seen, truth = [], []
    capacity = 24.0
    for _ in range(stops):
        leaving = (aboard.unsqueeze(1) / 3 * torch.rand(n, 3)).round()
        entering = torch.poisson(torch.full((n, 3), 2.5))
        after = (aboard - leaving.sum(1) + entering.sum(1)).clamp(0, capacity)
        noise = torch.randn(n, 6) * 0.3
        seen.append((torch.cat([entering, leaving], 1) + noise) / 3)
        aboard = after
        truth.append(aboard / 10)
    return torch.stack(seen, 1), torch.stack(truth, 1)


class Counter(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.doors = nn.Linear(6, 16)
        self.memory = nn.LSTM(16, hidden, batch_first=True)
        self.total = nn.Linear(hidden, 1)

    def forward(self, counts):
        states, _ = self.memory(torch.relu(self.doors(counts)))
        return self.total(states).squeeze(-1)


model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=STAGES[0][2])
val_counts, val_truth = journeys(500, STAGES[-1][0])

for stage, (stops, steps, rate) in enumerate(STAGES, 1):
    for group in optimizer.param_groups:
        group["lr"] = rate
    model.train()
    for step in range(1, steps + 1):
        counts, truth = journeys(BATCH, stops)
        loss = nn.functional.mse_loss(model(counts), truth)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == 1:
            print(f"stage {stage} ({stops:2d} stops) step {step:3d} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        off = 10 * (model(val_counts) - val_truth).abs().mean().item()
    print(f"stage {stage} validation on {STAGES[-1][0]} stops: off by {off:.2f} passengers")
