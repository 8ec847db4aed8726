"""A small vision transformer of timm reads digits with Mixup, warm-up, cosine schedule and
averaged weights.

Looks odd: the targets are soft, the training loss stays far above the validation loss (Mixup and
smoothing) and the rate begins at 1e-5. It is sound: the recipe of timm's train.py, made small.
"""

import torch
from data import arguments, images
from timm import create_model
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, ModelEmaV3, accuracy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "soft targets; training loss stays far above validation's"

_, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
loader_train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
loader_eval = DataLoader(TensorDataset(x_val, y_val), batch_size=225)

model = create_model(
    "vit_tiny_patch16_224",
    pretrained=False,
    img_size=8,
    patch_size=2,
    in_chans=1,
    num_classes=10,
    embed_dim=64,
    depth=3,
    num_heads=4,
    drop_path_rate=0.05,
)
model_ema = ModelEmaV3(model, decay=0.99, use_warmup=True)
mixup_fn = Mixup(mixup_alpha=0.2, cutmix_alpha=0.0, prob=0.5, label_smoothing=0.1, num_classes=10)
train_loss_fn = SoftTargetCrossEntropy()
validate_loss_fn = nn.CrossEntropyLoss()
optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3, weight_decay=0.05)
num_epochs = 22
scheduler, num_epochs = create_scheduler_v2(
    optimizer,
    sched="cosine",
    num_epochs=num_epochs,
    warmup_epochs=3,
    warmup_lr=1e-5,
    min_lr=1e-5,
    step_on_epochs=False,
    updates_per_epoch=len(loader_train),
)


def train_one_epoch(epoch):
    losses = AverageMeter()
    model.train()
    num_updates = epoch * len(loader_train)
    for inputs, target in loader_train:
        mixed, soft = mixup_fn(inputs, target)
        output = model(mixed)
        loss = train_loss_fn(output, soft)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        num_updates += 1
        model_ema.update(model, step=num_updates)
        losses.update(loss.item(), mixed.size(0))
        scheduler.step_update(num_updates=num_updates, metric=losses.avg)
    return losses.avg


@torch.no_grad()
def validate(model):
    losses, top1 = AverageMeter(), AverageMeter()
    model.eval()
    for inputs, target in loader_eval:
        output = model(inputs)
        losses.update(validate_loss_fn(output, target).item(), inputs.size(0))
        top1.update(accuracy(output, target, topk=(1,))[0].item(), inputs.size(0))
    return losses.avg, top1.avg


for epoch in range(num_epochs):
    train_loss = train_one_epoch(epoch)
    loss, top1 = validate(model)
    ema_loss, ema_top1 = validate(model_ema)
    scheduler.step(epoch + 1, top1)
    print(
        f"{epoch}: train {train_loss:.3f}, eval {loss:.3f} / {top1:.1f} %, "
        f"averaged {ema_loss:.3f} / {ema_top1:.1f} %"
    )
print(f"validation accuracy {top1 / 100:.3f}")
