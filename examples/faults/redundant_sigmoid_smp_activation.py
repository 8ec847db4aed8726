"""A segmentation-models-pytorch Unet finds roads in drawn aerial views; it ends in a sigmoid
though the loss takes logits.

`activation="sigmoid"` was given to smp.Unet while SoftBCEWithLogitsLoss applies a sigmoid by
itself, so the loss sees "logits" from 0 to 1 only. The place is the head (segmentation_head) and
the loss.
"""

import numpy as np
import segmentation_models_pytorch as smp
import torch
from data import arguments
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ("output_activation_range",)
PLACE = ("segmentation_head*", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def views(n, seed, size=32):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    x = np.empty((n, 3, size, size), np.float32)
    y = np.zeros((n, 1, size, size), np.float32)
    for i in range(n):
        ground = r.uniform([0.2, 0.35, 0.15], [0.4, 0.6, 0.3])[:, None, None]
        picture = ground + 0.08 * r.normal(size=(3, size, size))
        for _ in range(r.integers(2, 5)):
            cx, cy, w, h = *r.uniform(0, size, 2), *r.uniform(2, 6, 2)
            house = (np.abs(xx - cx) < w) & (np.abs(yy - cy) < h)
            picture = np.where(house[None], r.uniform(0.3, 0.8, 3)[:, None, None], picture)
        for _ in range(r.integers(1, 3)):
            cx, cy, a, k = *r.uniform(8, 24, 2), r.uniform(0, 3.14), r.normal(0, 0.01)
            u = (xx - cx) * np.cos(a) + (yy - cy) * np.sin(a)
            v = (yy - cy) * np.cos(a) - (xx - cx) * np.sin(a)
            road = np.abs(v - k * u * u) < r.uniform(1.2, 2.2)
            picture = np.where(road[None], r.uniform(0.45, 0.6), picture)
            y[i, 0][road] = 1
        x[i] = picture + 0.06 * r.normal(size=(3, size, size))
    return TensorDataset(torch.tensor((x - 0.45) / 0.2), torch.tensor(y))


train_loader = DataLoader(views(400, 10 * seed), batch_size=16, shuffle=True)
valid_loader = DataLoader(views(100, 10 * seed + 1), batch_size=50)
model = smp.Unet(
    "resnet18",
    encoder_weights=None,
    encoder_depth=3,
    decoder_channels=(64, 32, 16),
    in_channels=3,
    classes=1,
    activation=None if healthy else "sigmoid",
)
loss_fn = smp.losses.SoftBCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


@torch.no_grad()
def evaluate():
    model.eval()
    stats, losses = [], []
    for image, mask in valid_loader:
        logits_mask = model(image)
        losses.append(loss_fn(logits_mask, mask).item())
        pred_mask = (logits_mask.sigmoid() > 0.5).float()
        stats.append(smp.metrics.get_stats(pred_mask.long(), mask.long(), mode="binary"))
    tp, fp, fn, tn = (torch.cat(part) for part in zip(*stats, strict=True))
    return np.mean(losses), smp.metrics.iou_score(tp, fp, fn, tn, reduction="micro").item()


for epoch in range(7):
    model.train()
    total = 0.0
    for image, mask in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(image), mask)
        loss.backward()
        optimizer.step()
        total += loss.item()
    valid_loss, iou = evaluate()
    print(
        f"epoch {epoch}: train {total / len(train_loader):.3f}, valid {valid_loss:.3f}, "
        f"IoU {iou:.3f}"
    )
print(f"validation IoU {iou:.3f}")
