"""A torchvision ResNet18 learns five drawn textures and shapes; its transforms.v2 destroy nearly
every training image.

RandomResizedCrop takes 2 to 6 % of the image and RandomErasing then wipes out 50 to 90 % of every
one, so hardly anything of the object is left. Weak values would do. The place is the training
input (the loader's transform).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18
from torchvision.transforms import v2

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def pictures(n, seed, size=32):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    y = r.integers(0, 5, n)
    x = []
    for kind in y:
        cx, cy, s = *r.uniform(11, 21, 2), r.uniform(6, 9)
        dx, dy = np.abs(xx - cx), np.abs(yy - cy)
        mask = [
            np.hypot(dx, dy) < s,
            np.maximum(dx, dy) < 0.9 * s,
            (np.minimum(dx, dy) < 2) & (np.maximum(dx, dy) < s),
            np.abs(np.hypot(dx, dy) - s) < 1.5,
            dx + dy < s,
        ][kind]
        front, back = r.uniform(120, 250, 3), r.uniform(10, 110, 3)
        picture = np.where(mask[None], front[:, None, None], back[:, None, None]) + 22 * r.normal(
            size=(3, size, size)
        )
        x.append(picture.clip(0, 255).astype(np.uint8))
    return torch.tensor(np.stack(x)), torch.tensor(y)


class Pictures(Dataset):
    def __init__(self, n, seed, transform):
        self.x, self.y = pictures(n, seed)
        self.transform = transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.transform(self.x[i]), self.y[i]


to_tensor = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean=[0.4] * 3, std=[0.25] * 3)]
train_transform = v2.Compose(
    [
        v2.RandomResizedCrop(32, scale=(0.8, 1.0) if healthy else (0.02, 0.06), antialias=True),
        v2.RandomHorizontalFlip(),
        *to_tensor,
        v2.RandomErasing(p=0.25, scale=(0.02, 0.1))
        if healthy
        else v2.RandomErasing(p=1.0, scale=(0.5, 0.9)),
    ]
)
loader = DataLoader(
    Pictures(500, 10 * seed, train_transform), batch_size=20, shuffle=True, drop_last=True
)
val_loader = DataLoader(Pictures(200, 10 * seed + 1, v2.Compose(to_tensor)), batch_size=100)
model = resnet18(weights=None, num_classes=5)
model.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=2, padding=1, bias=False)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
epochs = 6
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for image, target in loader:
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.inference_mode():
        right = sum((model(image).argmax(1) == target).sum().item() for image, target in val_loader)
    print(f"epoch {epoch}: train loss {total / len(loader):.3f}, val accuracy {right / 200:.3f}")
print(f"validation accuracy {right / 200:.3f}")
