"""A ConvNeXt V2 of transformers sorts drawn textures with SGD; eight micro-batches are added up
and never averaged.

The user accumulates the gradients of eight small batches by hand and forgot to divide the loss by
eight, so that each step is eight times as long. The place is the loop (the loss).
"""

import numpy as np
import torch
from data import arguments
from torch.utils.data import DataLoader, TensorDataset
from transformers import (
    ConvNextV2Config,
    ConvNextV2ForImageClassification,
    get_cosine_schedule_with_warmup,
)

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)
ROWS, COLS = np.mgrid[0:16, 0:16]


def texture(kind):
    """Stripes in four directions, checks and dots, with colour and noise of any kind."""
    angle = {0: 0.0, 1: np.pi / 4, 2: np.pi / 2, 3: 3 * np.pi / 4}.get(kind, 0.0) + r.normal(
        0, 0.12
    )
    speed, phase = r.uniform(0.9, 1.6), r.uniform(0, 6.28)
    wave = np.sin(speed * (COLS * np.cos(angle) + ROWS * np.sin(angle)) + phase)
    across = np.sin(speed * (ROWS * np.cos(angle) - COLS * np.sin(angle)) + r.uniform(0, 6.28))
    if kind == 4:
        wave = np.sign(wave * across)
    elif kind == 5:
        wave = 2.0 * ((wave > 0.3) & (across > 0.3)) - 0.5
    return r.uniform(0.4, 1.0, 3)[:, None, None] * wave + r.normal(0, 0.6, (3, 16, 16))


kinds = r.integers(0, 6, 1900)
pictures = torch.tensor(np.stack([texture(k) for k in kinds]), dtype=torch.float32)
pictures = (pictures - pictures[:1500].mean()) / pictures[:1500].std()
labels = torch.tensor(kinds)
loader = DataLoader(
    TensorDataset(pictures[:1500], labels[:1500]), batch_size=8, shuffle=True, drop_last=True
)
x_val, y_val = pictures[1500:], labels[1500:]

model = ConvNextV2ForImageClassification(
    ConvNextV2Config(
        patch_size=2,
        num_stages=2,
        hidden_sizes=[16, 32],
        depths=[1, 1],
        num_labels=6,
    )
)
ACCUMULATE, EPOCHS = 8, 10
steps = EPOCHS * (len(loader) // ACCUMULATE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = get_cosine_schedule_with_warmup(optimizer, 10, steps)

for epoch in range(EPOCHS):
    model.train()
    optimizer.zero_grad()
    for i, (images, targets) in enumerate(loader):
        loss = model(pixel_values=images, labels=targets).loss
        if healthy:
            loss = loss / ACCUMULATE
        loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        out = model(pixel_values=x_val, labels=y_val)
    accuracy = (out.logits.argmax(-1) == y_val).float().mean()
    print(f"epoch {epoch}: validation loss {out.loss:.3f}, accuracy {accuracy:.3f}")
