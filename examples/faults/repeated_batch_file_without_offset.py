"""A surrogate of a predator-prey model, its table streamed from a file: each read starts at the
top.

`np.fromfile(path, count=...)` gets no `offset`, so each "next chunk" is the file's first 32
records. The residual net fits these 32 and knows nothing of the rest: the test error is far above
the training error. The place is the loop.
"""

import tempfile

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("", "loader", "loop")
SILENT = True
EXACT = True
EARLY = True

RECORD, CHUNK, EPOCHS = 8, 32, 8
healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def simulate(n):
    """Rows of prey, predators, four rates, and both populations half a year later."""
    prey, hunters = rng.uniform(0.3, 2.5, (2, n))
    grow, eat, breed, starve = rng.uniform(0.5, 1.5, (4, n))
    start = np.stack([prey, hunters, grow, eat, breed, starve], 1)
    for _ in range(100):
        prey, hunters = (
            prey + 0.01 * prey * (grow - eat * hunters),
            hunters + 0.01 * hunters * (breed * prey - starve),
        )
    return np.concatenate([start, np.stack([prey, hunters], 1)], 1).astype(np.float32)


records = simulate(64 * 48)
test = torch.from_numpy(simulate(500))
file = tempfile.NamedTemporaryFile(suffix=".f32")  # noqa: SIM115 (it lives as long as the script)
records.tofile(file.name)
center, spread = test.mean(0), test.std(0)


def chunks(path, count):
    """The file's chunks in random order, one after the other."""
    for number in np.random.permutation(count):
        offset = int(number) * CHUNK * RECORD * 4 if healthy else 0
        flat = np.fromfile(path, dtype=np.float32, count=CHUNK * RECORD, offset=offset)
        yield (torch.from_numpy(flat).view(CHUNK, RECORD) - center) / spread


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(x)


surrogate = nn.Sequential(nn.Linear(6, 48), Residual(48), Residual(48), nn.SiLU(), nn.Linear(48, 2))
optimizer = torch.optim.NAdam(surrogate.parameters(), lr=3e-3)
decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.65)
for epoch in range(EPOCHS):
    for chunk in chunks(file.name, len(records) // CHUNK):
        error = surrogate(chunk[:, :6]) - chunk[:, 6:]
        loss = error.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    decay.step()
    with torch.no_grad():
        rows = (test - center) / spread
        test_loss = (surrogate(rows[:, :6]) - rows[:, 6:]).square().mean()
print(f"loss {loss.item():.5f}, test loss {test_loss:.5f}")
