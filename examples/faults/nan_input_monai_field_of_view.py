"""A MONAI Regressor measures the share of bright tissue in drawn scans, of which some carry NaN
outside the field of view.

The scanner writes NaN where it measured nothing; the transforms lack SignalFillEmpty, so those
scans enter the network as NaN and the first of them spoils all weights. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from monai.data import ArrayDataset, DataLoader
from monai.networks.nets import Regressor
from monai.transforms import (
    Compose,
    EnsureChannelFirst,
    Identity,
    ScaleIntensityRange,
    SignalFillEmpty,
    ToTensor,
)
from monai.utils import set_determinism

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
set_determinism(seed=seed)


def scans(n, seed, size=32):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    images, shares = [], []
    for _ in range(n):
        tissue = np.zeros((size, size), bool)
        for _ in range(r.integers(1, 6)):
            cx, cy, a, b = *r.uniform(8, 24, 2), *r.uniform(2, 6, 2)
            tissue |= ((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2 < 1
        image = 90 + 60 * tissue + 25 * r.normal(size=tissue.shape)
        if r.random() < 0.05:
            image[np.hypot(xx - 15.5, yy - 15.5) > 19] = np.nan
        images.append(image.astype(np.float32))
        shares.append(np.array([(tissue.mean() - 0.15) / 0.1], np.float32))
    return images, shares


def dataset(n, seed):
    images, shares = scans(n, seed)
    transforms = Compose(
        [
            EnsureChannelFirst(channel_dim="no_channel"),
            SignalFillEmpty(replacement=90.0) if healthy else Identity(),
            ScaleIntensityRange(a_min=40, a_max=200, b_min=-1.0, b_max=1.0),
        ]
    )
    return ArrayDataset(images, transforms, shares, ToTensor())


train_loader = DataLoader(dataset(700, 10 * seed), batch_size=20, shuffle=True)
val_loader = DataLoader(dataset(200, 10 * seed + 1), batch_size=100)
model = Regressor(
    in_shape=(1, 32, 32),
    out_shape=(1,),
    channels=(8, 16, 16),
    strides=(2, 2, 2),
    num_res_units=1,
    norm="BATCH",
)
loss_function = torch.nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), 2e-3)

for epoch in range(10):
    model.train()
    epoch_loss = 0.0
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = loss_function(model(inputs), targets)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        pairs = [(model(inputs), targets) for inputs, targets in val_loader]
    out, truth = (
        torch.cat([torch.as_tensor(p) for p in part]) for part in zip(*pairs, strict=True)
    )
    r2 = 1 - float((out - truth).pow(2).mean() / truth.var())
    print(f"epoch {epoch + 1}: train {epoch_loss:.4f}, val R2 {r2:.3f}")
print(f"validation R2 {r2:.3f}")
