"""A ConvNext sorts photographs of leaves by shape; the image processor of the validation does not
rescale.

The user made a second processor for validation and switched do_rescale off there (the pictures
are bytes, 0 to 255), so that the validation images are 255 times as large. The place is the input
in validation.
"""

import numpy as np
import torch
from data import arguments
from torch.utils.data import DataLoader
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    ViTImageProcessor,
    get_cosine_schedule_with_warmup,
)

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)
ROWS, COLS = np.mgrid[-12:12, -12:12] + 0.5


def leaf(kind):
    """Round, long, lobed or toothed, on a ground of any colour: bytes, 24 by 24."""
    turn = r.uniform(0, 2 * np.pi)
    y, x = ROWS + r.uniform(-1.5, 1.5), COLS + r.uniform(-1.5, 1.5)
    u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    around, size = np.arctan2(v, u), r.uniform(6, 9)
    edge = {
        0: size * (1 + 0 * around),
        1: size / np.sqrt(np.cos(around) ** 2 + 5 * np.sin(around) ** 2),
        2: size * (0.75 + 0.3 * np.cos(3 * around)),
        3: size * (0.9 + 0.12 * np.sign(np.sin(9 * around))),
    }[kind]
    inside = (np.hypot(u, v) < edge)[..., None]
    green, ground = (
        np.array([60, 140, 50]) + r.normal(0, 20, 3),
        np.array([150, 140, 120]) + r.normal(0, 25, 3),
    )
    image = np.where(inside, green, ground) + r.normal(0, 14, (24, 24, 3))
    return np.clip(image, 0, 255).astype("uint8")


kinds = r.integers(0, 4, 1500)
leaves = [leaf(k) for k in kinds]
processor = ViTImageProcessor(
    size={"height": 24, "width": 24}, image_mean=[0.45] * 3, image_std=[0.2] * 3
)
val_processor = ViTImageProcessor(
    size={"height": 24, "width": 24}, image_mean=[0.45] * 3, image_std=[0.2] * 3, do_rescale=healthy
)
train = processor(leaves[:1200], return_tensors="pt")["pixel_values"]
val = val_processor(leaves[1200:], return_tensors="pt")["pixel_values"]
labels = torch.tensor(kinds)

model = ConvNextForImageClassification(
    ConvNextConfig(
        patch_size=2,
        hidden_sizes=[16, 32],
        depths=[1, 1],
        num_stages=2,
        layer_scale_init_value=0.1,
        num_labels=4,
    )
)
loader = DataLoader(list(zip(train, labels[:1200], strict=True)), batch_size=32, shuffle=True)
epochs = 10
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
schedule = get_cosine_schedule_with_warmup(optimizer, 30, epochs * len(loader))

for epoch in range(epochs):
    model.train()
    for images, targets in loader:
        loss = model(pixel_values=images, labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(pixel_values=val, labels=labels[1200:])
    accuracy = (out.logits.argmax(-1) == labels[1200:]).float().mean()
    print(
        f"epoch {epoch}: loss {loss.item():.3f}, validation loss {out.loss:.3f}, "
        f"accuracy {accuracy:.3f}"
    )
