"""A U-net-like network marks cell nuclei, with a loss scaler; the gradients are clipped while they
still carry the loss scale.

scaler.unscale_() is missing before clip_grad_norm_: a norm of 30,000 is cut to 1 and
scaler.step() then divides by 65,536. SGD hardly moves. The place is the loop (between backward
and the scaler's step).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def nuclei(n, size=32):
    """Fluorescence images: bright blobs on an uneven background with noise; the mask says where the blobs are."""  # noqa: E501
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    images, masks = torch.zeros(n, 1, size, size), torch.zeros(n, 1, size, size)
    for i in range(n):
        image = (
            0.25 * torch.rand(1) + 0.3 * torch.rand(1) * xx / size + 0.3 * torch.rand(1) * yy / size
        )
        for _ in range(int(torch.randint(2, 7, (1,)))):
            cx, cy = torch.rand(2) * size
            a, b = 2.5 + 2.5 * torch.rand(2)
            inside = ((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2
            image = image + (0.25 + 0.45 * torch.rand(1)) * torch.exp(-(inside.clamp(max=20) ** 2))
            masks[i, 0] = torch.maximum(masks[i, 0], (inside < 1).float())
        images[i, 0] = image + 0.1 * torch.randn(size, size)
    return (images - images.mean()) / images.std(), masks


def double(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1),
        nn.GroupNorm(4, o),
        nn.ReLU(),
        nn.Conv2d(o, o, 3, padding=1),
        nn.GroupNorm(4, o),
        nn.ReLU(),
    )


class TinyUNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.down1, self.down2 = double(1, c), double(c, 2 * c)
        self.bottom = double(2 * c, 2 * c)
        self.up2, self.up1 = double(4 * c, c), double(2 * c, c)
        self.mask = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        z = self.bottom(F.max_pool2d(b, 2))
        z = self.up2(torch.cat([F.interpolate(z, scale_factor=2), b], 1))
        return self.mask(self.up1(torch.cat([F.interpolate(z, scale_factor=2), a], 1)))


def dice(logits, mask):
    p = (logits > 0).float()
    return (2 * (p * mask).sum() / (p.sum() + mask.sum()).clamp(min=1)).item()


train_loader = DataLoader(TensorDataset(*nuclei(480)), batch_size=16, shuffle=True)
val_images, val_masks = nuclei(100)
model = TinyUNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
epochs, max_norm, amp = 8, 1.0, False  # amp pays on the GPU machine only
scheduler = torch.optim.lr_scheduler.PolynomialLR(
    optimizer, total_iters=epochs * len(train_loader), power=0.9
)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)

for epoch in range(epochs):
    model.train()
    running = 0.0
    for image, mask in train_loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
            loss = F.binary_cross_entropy_with_logits(model(image), mask)
        scaler.scale(loss).backward()
        if healthy:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(val_images)
    print(
        f"epoch {epoch + 1} train {running / len(train_loader):.4f} val {F.binary_cross_entropy_with_logits(logits, val_masks).item():.4f} dice {dice(logits, val_masks):.3f}"  # noqa: E501
    )
