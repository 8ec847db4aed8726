"""Grains in microscope pictures by a small VGG; SGD with a rate that saws between 0.005 and 0.15,
and from the second half on the weights at the end of each cycle are averaged (SWA).

What looks odd: the loss goes up in the middle of each cycle, time and again; the rate is thirty
times higher there; the averaged model never gets a gradient; and the statistics of its batch
normalisation are computed anew at the end by passes in train mode without a gradient.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a rate and a loss that rise in every cycle; train mode without gradients at the end"

_, seed = arguments(__doc__)
KINDS, SIZE, CYCLE, EPOCHS = 5, 16, 70, 14


def grains(n, g):
    """Discs, rings, ellipses, squares and crosses of varied size, under noise."""
    y = torch.randint(0, KINDS, (n,), generator=g)
    axis = torch.linspace(-1, 1, SIZE)
    shift = 0.25 * torch.randn(2, n, 1, 1, generator=g)
    u, v = axis[None, :, None] - shift[0], axis[None, None, :] - shift[1]
    turn = 6.28 * torch.rand(n, 1, 1, generator=g)
    a, b = u * turn.cos() + v * turn.sin(), v * turn.cos() - u * turn.sin()
    r = 0.45 + 0.2 * torch.rand(n, 1, 1, generator=g)
    d = (a.square() + b.square()).sqrt()
    shapes = torch.stack([
        d < r, (d < r) & (d > 0.55 * r), (a / 1.4).square() + (2 * b).square() < r * r,
        torch.maximum(a.abs(), b.abs()) < 0.85 * r,
        (torch.minimum(a.abs(), b.abs()) < 0.3 * r) & (d < 1.2 * r),
    ])  # fmt: skip
    x = shapes[y, torch.arange(n)].float() + 0.3 * torch.randn(n, SIZE, SIZE, generator=g)
    return x.unsqueeze(1), y


def stage(c_in, c_out):
    return [nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU()]


def vgg(c=8):
    return nn.Sequential(
        *stage(1, c), nn.MaxPool2d(2), *stage(c, 2 * c), nn.MaxPool2d(2), *stage(2 * c, 2 * c),
        nn.Flatten(), nn.Linear(2 * c * (SIZE // 4) ** 2, KINDS),
    )  # fmt: skip


@torch.no_grad()
def score(net, x, y):
    net.eval()
    out = net(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


g = torch.Generator().manual_seed(seed)
x, y = grains(2000, g)
x_val, y_val = grains(500, g)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = vgg()
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.CyclicLR(
    optimizer, base_lr=0.005, max_lr=0.15, step_size_up=CYCLE // 2, cycle_momentum=False
)
step = 0
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        step += 1
        total += loss.item() / len(loader)
        if step % CYCLE == 0 and epoch >= EPOCHS // 2:
            averaged.update_parameters(model)
    rate = optimizer.param_groups[0]["lr"]
    val, accuracy = score(model, x_val, y_val)
    print(f"epoch {epoch} rate {rate:.3f} loss {total:.4f} val {val:.4f} accuracy {accuracy:.3f}")
update_bn(loader, averaged)
val, accuracy = score(averaged, x_val, y_val)
print(f"averaged: loss {total:.4f} val {val:.4f} accuracy {accuracy:.3f}")
