"""A small timm ConvNeXt tells bird calls apart by drawn spectrograms; its warm-up schedule is made
and never stepped.

`create_scheduler_v2` sets the rate to the warm-up's start, and the lines
`scheduler.step_update(...)` and `scheduler.step(...)` were forgotten in the loop, so the rate
stays there for ever. The place is the loop (scheduler, optimizer).
"""

import numpy as np
import torch
from data import arguments
from timm import create_model
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, accuracy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer", "scheduler")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def spectrograms(n, seed, size=32):
    r = np.random.default_rng(seed)
    t, f = np.linspace(0, 1, size)[None, :], np.linspace(0, 1, size)[:, None]
    y = r.integers(0, 6, n)
    x = np.empty((n, 1, size, size), np.float32)
    for i, kind in enumerate(y):
        base, swing, start = r.uniform(0.3, 0.6), r.uniform(0.15, 0.3), r.uniform(0, 0.25)
        u = (t - start).clip(0, 0.7) / 0.7
        line = [
            base + swing * (u - 0.5),
            base - swing * (u - 0.5),
            base + swing * np.sin(2 * np.pi * u),
            base + swing * np.sin(6 * np.pi * u) / 2,
            base + swing * (2 * np.abs(u - 0.5) - 0.5),
            base + 0 * u,
        ][kind]
        call = np.exp(-(((f - line) / 0.045) ** 2)) * ((t > start) & (t < start + 0.7))
        x[i, 0] = call * r.uniform(0.7, 1.3) + 0.28 * np.abs(r.normal(size=(size, size)))
    return torch.tensor((x - 0.35) / 0.35), torch.tensor(y)


loader_train = DataLoader(
    TensorDataset(*spectrograms(2400, 10 * seed)), batch_size=48, shuffle=True
)
loader_eval = DataLoader(TensorDataset(*spectrograms(240, 10 * seed + 1)), batch_size=120)
model = create_model("test_convnext", pretrained=False, in_chans=1, num_classes=6)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
scheduler, num_epochs = create_scheduler_v2(
    optimizer,
    sched="cosine",
    num_epochs=7,
    warmup_epochs=1,
    warmup_lr=1e-5,
    min_lr=1e-5,
    step_on_epochs=False,
    updates_per_epoch=len(loader_train),
)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)


def train_one_epoch(epoch):
    losses_m = AverageMeter()
    model.train()
    num_updates = epoch * len(loader_train)
    for inputs, target in loader_train:
        loss = loss_fn(model(inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses_m.update(loss.item(), inputs.size(0))
        num_updates += 1
        if healthy:
            scheduler.step_update(num_updates=num_updates, metric=losses_m.avg)
    return losses_m.avg


@torch.no_grad()
def validate():
    top1_m = AverageMeter()
    model.eval()
    for inputs, target in loader_eval:
        top1_m.update(accuracy(model(inputs), target)[0].item(), inputs.size(0))
    return top1_m.avg


for epoch in range(num_epochs):
    train_loss = train_one_epoch(epoch)
    top1 = validate()
    if healthy:
        scheduler.step(epoch + 1, top1)
    print(
        f"{epoch}: train {train_loss:.3f}, eval {top1:.1f} %, "
        f"lr {optimizer.param_groups[0]['lr']:.1e}"
    )
print(f"validation accuracy {top1 / 100:.3f}")
