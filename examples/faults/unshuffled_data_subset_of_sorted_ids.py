"""Crops from multispectral pixels: shuffle=True went lost when a sampler came in.

The file is sorted by crop, as the fields were walked. DataLoader complained that "sampler option
is mutually exclusive with shuffle", so the author removed shuffle; and the sampler gives the
training indices as the split helper sorted them, crop after crop. The place is the data. The
twin's sampler is SubsetRandomSampler.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("data", "loop", "input")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
CROPS, BANDS = 6, 10


class Pixels(Dataset):
    def __init__(self, per_crop=400):
        spectra = rng.normal(0, 1, (CROPS, BANDS))
        mix = rng.normal(0, 1, (BANDS, BANDS)) * 0.25
        self.y = np.repeat(np.arange(CROPS), per_crop)
        x = spectra[self.y] + rng.normal(0, 0.7, (len(self.y), BANDS))
        x = x + np.tanh(x @ mix) + rng.normal(0, 0.3, x.shape)
        self.x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class ListSampler(torch.utils.data.Sampler):
    """Yields exactly the given indices."""

    def __init__(self, indices):
        self.indices = indices

    def __iter__(self):
        return iter(self.indices)

    def __len__(self):
        return len(self.indices)


def split(n, share=0.25):
    order = rng.permutation(n)
    cut = int(share * n)
    return np.sort(order[cut:]).tolist(), np.sort(order[:cut]).tolist()


pixels = Pixels()
train_ids, val_ids = split(len(pixels))
sampler = SubsetRandomSampler(train_ids) if healthy else ListSampler(train_ids)
train = DataLoader(pixels, batch_size=40, sampler=sampler)
val = DataLoader(pixels, batch_size=300, sampler=ListSampler(val_ids))

model = nn.Sequential(
    nn.Linear(BANDS, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, CROPS)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    val_loss = hits = 0
    with torch.no_grad():
        for x, y in val:
            logits = model(x)
            val_loss += nn.functional.cross_entropy(logits, y).item() / len(val)
            hits += (logits.argmax(1) == y).sum().item()
    print(
        f"epoch {epoch:2d} loss {total:.3f} val {val_loss:.3f} accuracy {hits / len(val_ids):.3f}"
    )
