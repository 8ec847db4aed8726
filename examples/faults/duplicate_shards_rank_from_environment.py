"""Two ranks take turns in a list of recording files, and both believe that they are rank 0.

The ranks are started with torch.multiprocessing, which sets no RANK variable; the data set reads it
with a default of 0. Both ranks train on the same half of the speakers. The twin passes the rank on.
The place is the loader (or the rank).
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

KIND = "duplicate_shards"
ACCEPT = ("repeated_batch",)
PLACE = ("loader", "rank", "input")
SILENT = True
EXACT = True
EARLY = True

WORLD = 2
SPEAKERS = 8
GENERATOR = torch.Generator().manual_seed(7)
WORDS = torch.randn(5, 30, 8, generator=GENERATOR)
VOICES = torch.randn(SPEAKERS, 5, 1, 8, generator=GENERATOR)


def recording(speaker, seed, n):
    """n spoken words of one speaker: (n, 30 frames, 8 bands) and which of the five words."""
    g = torch.Generator().manual_seed(1000 * seed + speaker)
    word = torch.randint(0, 5, (n,), generator=g)
    accent = VOICES[speaker, word]
    return WORDS[word] * 0.35 + accent + torch.randn(n, 30, 8, generator=g), word


class Recordings(Dataset):
    def __init__(self, seed, rank=None):
        rank = int(os.environ.get("RANK", "0")) if rank is None else rank
        mine = range(rank, SPEAKERS, WORLD)
        parts = [recording(speaker, seed, 200) for speaker in mine]
        self.x = torch.cat([x for x, _ in parts])
        self.y = torch.cat([y for _, y in parts])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class WordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 24, 5, stride=2, padding=2)
        self.gru = nn.GRU(24, 24, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        h, _ = self.gru(F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2))
        return self.head(h.mean(1))


def train(rank, healthy, seed, port):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD
    )
    model = DistributedDataParallel(WordNet())
    dataset = Recordings(seed, rank if healthy else None)
    loader = DataLoader(dataset, batch_size=40, shuffle=True, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(7):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0 and epoch % 2 == 0:
            model.eval()
            tests = [recording(speaker, 500 + seed, 60) for speaker in range(SPEAKERS)]
            with torch.no_grad():
                hits = [(model.module(x).argmax(1) == y).float().mean().item() for x, y in tests]
            even, odd = sum(hits[::2]) / 4, sum(hits[1::2]) / 4
            print(f"epoch {epoch}: loss {loss:.3f}, accuracy {even:.3f} and {odd:.3f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(healthy, seed, port), nprocs=WORLD)
