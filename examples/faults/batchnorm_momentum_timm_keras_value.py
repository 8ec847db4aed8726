"""A small timm EfficientNet grades drawn leaves; its batch norms have the momentum 0.999 of Keras
instead of PyTorch's 0.1.

In PyTorch 0.999 means that the running statistics are those of the last batch alone (of eight
images here), so evaluation is poor and jumps from epoch to epoch. The place is the batch norms
(conv_stem's bn1, blocks.*.bn*).
"""

import numpy as np
import torch
from data import arguments
from timm import create_model
from timm.optim import create_optimizer_v2
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*", "bn1*", "blocks*", "*norm*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def leaves(n, seed, size=32):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    y = r.integers(0, 4, n)
    x = np.empty((n, 3, size, size), np.float32)
    for i, grade in enumerate(y):
        angle, long, wide = r.uniform(0, 3.14), r.uniform(11, 15), r.uniform(6, 9)
        u = (xx - 16) * np.cos(angle) + (yy - 16) * np.sin(angle)
        v = -(xx - 16) * np.sin(angle) + (yy - 16) * np.cos(angle)
        leaf = (u / long) ** 2 + (v / wide) ** 2 < 1
        light = r.uniform(0.6, 1.3)
        picture = np.where(leaf[None], np.array([0.2, 0.55, 0.2])[:, None, None], 0.75) * light
        for _ in range(int(grade) * 3 + r.integers(0, 2)):
            a, b = r.uniform(-0.75, 0.75, 2)
            spot = np.hypot(u - a * long, v - b * wide * np.sqrt(1 - a * a)) < r.uniform(1.2, 1.9)
            picture = np.where(
                spot[None], np.array([0.5, 0.3, 0.1])[:, None, None] * light, picture
            )
        x[i] = picture + 0.08 * r.normal(size=picture.shape)
    return torch.tensor((x - 0.55) / 0.25), torch.tensor(y)


loader_train = DataLoader(
    TensorDataset(*leaves(600, 10 * seed)), batch_size=8, shuffle=True, drop_last=True
)
x_val, y_val = leaves(240, 10 * seed + 1)
model = create_model(
    "test_efficientnet", pretrained=False, num_classes=4, bn_momentum=0.1 if healthy else 0.999
)
optimizer = create_optimizer_v2(model, opt="rmsproptf", lr=1e-3, weight_decay=1e-5, momentum=0.9)
epochs = 12
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 2e-3, epochs * len(loader_train), cycle_momentum=False
)
criterion = nn.CrossEntropyLoss()

for epoch in range(epochs):
    model.train()
    total = 0.0
    for image, target in loader_train:
        optimizer.zero_grad()
        loss = criterion(model(image), target)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    accuracy = (logits.argmax(1) == y_val).float().mean()
    val = criterion(logits, y_val)
    print(
        f"epoch {epoch}: train {total / len(loader_train):.3f}, val {val:.3f}, "
        f"accuracy {accuracy:.3f}"
    )
print(f"validation loss {val:.3f} accuracy {accuracy:.3f}")
