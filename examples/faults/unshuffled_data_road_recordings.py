"""A GRU names the road surface from vibrations; it is trained one surface after the other.

The recordings lie in one block per surface, as they were driven. The person wrote a sampler that
shuffles the windows inside each recording but takes the recordings in their order, so that for a
long time all batches have a single class. The place is the loader (RecordingSampler).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SURFACES = ("asphalt", "concrete", "cobbles", "gravel", "dirt")
WINDOW = 48


def drive(surface: int, windows: int, g: torch.Generator) -> torch.Tensor:
    """Three axes of acceleration; the surfaces differ in roughness, ring and joints."""
    n = windows * WINDOW
    speed = 1 + 0.25 * torch.rand(1, generator=g)
    rough = torch.tensor([0.35, 0.45, 0.9, 0.75, 0.7])[surface]
    memory = torch.tensor([0.2, 0.2, 0.3, 0.6, 0.9])[surface]
    noise = torch.randn(n, 3, generator=g)
    signal = torch.empty(n, 3)
    state = torch.zeros(3)
    for i in range(n):
        state = memory * state + (1 - memory**2).sqrt() * noise[i]
        signal[i] = state
    signal = rough * signal
    t = torch.arange(n)
    if surface == 1:
        signal[:, 2] += 1.3 * ((t * speed) % 24 < 1.5)
    if surface == 2:
        signal[:, 2] += 0.9 * (t * speed * 0.9).sin()
    signal[:, 0] += 0.3 * (0.05 * t).sin()
    return signal.view(windows, WINDOW, 3)


class Recordings(Dataset):
    def __init__(self, drives_per_surface: int, windows: int, g: torch.Generator):
        self.windows, self.surface, self.blocks = [], [], []
        for surface in range(len(SURFACES)):
            for _ in range(drives_per_surface):
                first = len(self.windows)
                self.windows.extend(drive(surface, windows, g))
                self.surface.extend([surface] * windows)
                self.blocks.append(list(range(first, first + windows)))

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        return self.windows[i], self.surface[i]


class RecordingSampler(Sampler):
    """Indices of the windows, so that the windows of a recording do not come in their order."""

    def __init__(self, recordings: Recordings):
        self.blocks = recordings.blocks

    def __len__(self):
        return sum(len(block) for block in self.blocks)

    def __iter__(self):
        order = [i for block in self.blocks for i in self.shuffled(block)]
        return iter(self.shuffled(order) if healthy else order)

    @staticmethod
    def shuffled(indices):
        return [indices[j] for j in torch.randperm(len(indices))]


class SurfaceNet(nn.Module):
    def __init__(self, hidden: int = 32):
        super().__init__()
        self.local = nn.Conv1d(3, 16, 5, stride=2, padding=2)
        self.gru = nn.GRU(16, hidden, batch_first=True)
        self.head = nn.Linear(2 * hidden, len(SURFACES))

    def forward(self, x):
        maps = F.relu(self.local(x.transpose(1, 2))).transpose(1, 2)
        states, last = self.gru(maps)
        return self.head(torch.cat([states.mean(1), last[-1]], 1))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    confusion = torch.zeros(len(SURFACES), len(SURFACES), dtype=torch.long)
    for x, y in loader:
        for truth, answer in zip(y, model(x).argmax(1), strict=True):
            confusion[truth, answer] += 1
    return confusion


def main():
    g = torch.Generator().manual_seed(60 + seed)
    train, val = Recordings(5, 60, g), Recordings(2, 60, g)
    loader = DataLoader(train, batch_size=32, sampler=RecordingSampler(train))
    val_loader = DataLoader(val, batch_size=100)
    model = SurfaceNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        model.train()
        losses = []
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        confusion = evaluate(model, val_loader)
        right = confusion.diag().sum() / confusion.sum()
        recalls = " ".join(f"{recall:.2f}" for recall in confusion.diag() / confusion.sum(1))
        print(
            f"epoch {epoch}  train loss {sum(losses) / len(losses):.3f}  val acc {right:.3f}"
            f"  recalls {recalls}"
        )


if __name__ == "__main__":
    main()
