"""A fine-tuning of a small CNN in two phases, first the head, then everything; the optimizer only
ever knows the head.

The optimizer is made from the parameters that need a gradient while the backbone is frozen. After
three epochs the backbone is set free, and gets gradients from then on, but nobody adds it to the
optimizer. The place is the backbone (stem, stage1, stage2).
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("backbone*", "optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

CFG = {
    "batch": 32,
    "pre_epochs": 6,
    "head_epochs": 2,
    "full_epochs": 8,
    "lr_head": 3e-3,
    "lr_backbone": 1e-3,
}


class Backbone(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.stage1 = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.stage2 = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.stage2(self.stage1(self.stem(x))).mean((2, 3))


class Classifier(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(48, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def run_epoch(model, loader, optimizer=None):
    training = optimizer is not None
    model.train(training)
    loss_sum, hits, n = 0.0, 0, 0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, hits / n


def target_domain(x, g):
    """The new camera: rotated a quarter, inverted, a stripe of clutter and noise."""
    x = -torch.rot90(x, 1, (2, 3))
    stripe = torch.randint(0, 8, (len(x),), generator=g)
    x[torch.arange(len(x)), 0, stripe] += 0.8
    return x + 0.25 * torch.randn(x.shape, generator=g)


x, y, x_val, y_val = images(seed)
half = len(x) // 2
few = y[:half] < 5
source = DataLoader(
    TensorDataset(x[:half][few], y[:half][few]), CFG["batch"], shuffle=True, drop_last=True
)
g = torch.Generator().manual_seed(seed)
train = DataLoader(
    TensorDataset(target_domain(x[half:].clone(), g), y[half:]),
    CFG["batch"],
    shuffle=True,
    drop_last=True,
)
val = DataLoader(TensorDataset(target_domain(x_val.clone(), g), y_val), 128)

pretrained = Classifier(Backbone(), 5)
opt = torch.optim.Adam(pretrained.parameters(), lr=2e-3)
for epoch in range(CFG["pre_epochs"]):
    loss, acc = run_epoch(pretrained, source, opt)
print(f"pre-training: loss {loss:.3f} acc {acc:.3f}")
checkpoint = pretrained.backbone.state_dict()

backbone = Backbone()
backbone.load_state_dict(checkpoint)
model = Classifier(backbone, 10)
for p in model.backbone.parameters():
    p.requires_grad = False

optimizer = torch.optim.AdamW(
    [p for p in model.parameters() if p.requires_grad], lr=CFG["lr_head"], weight_decay=1e-3
)
for epoch in range(CFG["head_epochs"] + CFG["full_epochs"]):
    if epoch == CFG["head_epochs"]:
        for p in model.backbone.parameters():
            p.requires_grad = True
        if healthy:
            optimizer.add_param_group(
                {"params": model.backbone.parameters(), "lr": CFG["lr_backbone"]}
            )
        print("backbone unfrozen")
    loss, acc = run_epoch(model, train, optimizer)
    val_loss, val_acc = run_epoch(model, val)
    print(
        f"epoch {epoch:2d} loss {loss:.3f} acc {acc:.3f} | val loss {val_loss:.3f} acc {val_acc:.3f}"  # noqa: E501
    )
