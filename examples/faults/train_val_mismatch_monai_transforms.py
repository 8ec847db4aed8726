"""A MONAI DenseNet names the organ in drawn slices; the validation transforms lack the intensity
scaling of the training's.

The training transforms map 0..400 to 0..1 (ScaleIntensityRange), the validation list was written
anew and the line forgotten, so the network is validated on numbers some hundred times larger. The
place is the validation input (loader).
"""

import numpy as np
import torch
from data import arguments
from monai.data import DataLoader
from monai.metrics import ROCAUCMetric
from monai.networks.nets import DenseNet
from monai.transforms import (
    Activations,
    AsDiscrete,
    Compose,
    EnsureChannelFirst,
    RandFlip,
    RandGaussianNoise,
    ScaleIntensityRange,
)
from monai.utils import set_determinism

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
set_determinism(seed=seed)


def slices(n, seed, size=32):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size] - 15.5
    y = r.integers(0, 4, n)
    x = []
    for organ in y:
        u, v = xx - r.normal(0, 2), yy - r.normal(0, 2)
        s, turn = r.uniform(0.8, 1.15), r.normal(0, 0.3)
        u, v = (u * np.cos(turn) + v * np.sin(turn)) / s, (v * np.cos(turn) - u * np.sin(turn)) / s
        ring = np.hypot(u / 1.1, v)
        body = [
            (ring < 11) & (ring > 8.5),
            (np.hypot(u - 5, v / 1.6) < 4.5) | (np.hypot(u + 5, v / 1.6) < 4.5),
            np.hypot(u / 1.5, v - 2) + 0.35 * u < 7,
            (np.abs(u) < 2.5) & (np.abs(v) < 12) | (np.hypot(u, v + 9) < 4),
        ][organ]
        x.append(
            (120 + 110 * body * r.uniform(0.6, 1.2) + 35 * r.normal(size=body.shape))
            .clip(0, 400)
            .astype(np.float32)
        )
    return x, torch.tensor(y)


scale = ScaleIntensityRange(a_min=0, a_max=400, b_min=0.0, b_max=1.0, clip=True)
train_transforms = Compose(
    [
        EnsureChannelFirst(channel_dim="no_channel"),
        scale,
        RandFlip(spatial_axis=1, prob=0.5),
        RandGaussianNoise(prob=0.3, std=0.03),
    ]
)
val_transforms = Compose(
    [EnsureChannelFirst(channel_dim="no_channel"), *([scale] if healthy else [])]
)


class OrganDataset(torch.utils.data.Dataset):
    def __init__(self, images, labels, transforms):
        self.images, self.labels, self.transforms = images, labels, transforms

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transforms(self.images[index]).as_tensor(), self.labels[index]


train_loader = DataLoader(
    OrganDataset(*slices(500, 10 * seed), train_transforms), batch_size=25, shuffle=True
)
val_loader = DataLoader(OrganDataset(*slices(200, 10 * seed + 1), val_transforms), batch_size=100)
model = DenseNet(
    spatial_dims=2,
    in_channels=1,
    out_channels=4,
    init_features=16,
    growth_rate=8,
    block_config=(2, 2, 2),
)
loss_function = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
y_pred_trans = Compose([Activations(softmax=True)])
y_trans = Compose([AsDiscrete(to_onehot=4)])
auc_metric = ROCAUCMetric()

for epoch in range(8):
    model.train()
    epoch_loss = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = loss_function(model(inputs), labels)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        pairs = [(model(images), labels) for images, labels in val_loader]
    y_pred, y = (torch.cat(part) for part in zip(*pairs, strict=True))
    val_loss = loss_function(y_pred, y).item()
    accuracy = (y_pred.argmax(dim=1) == y).float().mean().item()
    auc_metric([y_pred_trans(i) for i in y_pred], [y_trans(i) for i in y.unsqueeze(1)])
    auc = auc_metric.aggregate()
    auc_metric.reset()
    print(
        f"epoch {epoch + 1}: train {epoch_loss:.4f}, val {val_loss:.4f}, accuracy {accuracy:.3f}, "
        f"AUC {auc:.3f}"
    )
print(f"validation accuracy {accuracy:.3f}")
