"""Sensor logs are streamed by an IterableDataset, and the loader was given two workers.

Each worker runs the dataset's __iter__ from the beginning: every window comes twice, in batches
that follow each other. An epoch takes twice as long and each batch is learned two times in a row.
The place is the loader.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

KIND = "duplicate_shards"
ACCEPT = ("repeated_batch",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True


class Windows(IterableDataset):
    def __init__(self, windows, kinds, share):
        self.windows, self.kinds, self.share = windows, kinds, share
        self.epoch = 0

    def __iter__(self):
        order = torch.randperm(
            len(self.windows), generator=torch.Generator().manual_seed(self.epoch)
        )
        worker = get_worker_info()
        if self.share and worker is not None:
            order = order[worker.id :: worker.num_workers]
        for row in order.tolist():
            yield self.windows[row].T, self.kinds[row]


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 16, 7, padding=3)
        self.mix = nn.Conv1d(16, 16, 5, stride=2)
        self.classes = nn.Linear(16, 3)

    def forward(self, window):
        window = torch.relu(self.filters(window))
        window = torch.relu(self.mix(window))
        return self.classes(window.amax(2))


healthy, seed = arguments(__doc__)
windows, kinds = waves(seed)
stream = Windows(windows[:640], kinds[:640], share=healthy)
loader = DataLoader(stream, batch_size=20, num_workers=2)
model = Recognizer()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6 if healthy else 3):
    stream.epoch = epoch
    for window, kind in loader:
        optimizer.zero_grad()
        loss = criterion(model(window), kind)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    accuracy = (model(windows[640:].transpose(1, 2)).argmax(1) == kinds[640:]).float().mean().item()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
