"""Even or odd? A new head on a pretrained digit encoder: most parameters are frozen, and soundly
so.

It looks odd because the encoder has no gradients and is in no optimizer during the second stage.
But it was trained in the first stage (rotated digits, which of four rotations), saved and loaded
from the checkpoint, and the second stage has few labels, so only its head is meant to learn.
"""

import io
from dataclasses import dataclass

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F

ODD = "a frozen encoder that no optimizer knows: it was pretrained and loaded"
_, seed = arguments(__doc__)


@dataclass
class Config:
    batch_size: int = 64
    pretrain_epochs: int = 8
    head_epochs: int = 40
    labelled: int = 500
    lr: float = 2e-3


def make_encoder():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    )


def run_epoch(forward, parameters, optimizer, x, y, size):
    total = 0.0
    for rows in torch.randperm(len(x)).split(size):
        loss = F.cross_entropy(forward(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(x)


def rotated(x):
    k = torch.randint(0, 4, (len(x),))
    turned = torch.stack(
        [torch.rot90(image, int(n), (1, 2)) for image, n in zip(x, k, strict=True)]
    )
    return turned, k


@torch.no_grad()
def accuracy(forward, x, y):
    return (forward(x).argmax(1) == y).float().mean().item()


def pretrain(cfg, x, x_val):
    model = nn.Sequential(make_encoder(), nn.Linear(128, 4))
    optimizer = torch.optim.Adam(model.parameters(), cfg.lr)
    test, label = rotated(x_val)
    for epoch in range(cfg.pretrain_epochs):
        model.train()
        loss = run_epoch(model, model.parameters(), optimizer, *rotated(x), cfg.batch_size)
        model.eval()
        print(
            f"pretrain {epoch}  loss {loss:.4f}  "
            f"rotation accuracy {accuracy(model, test, label):.4f}"
        )
    file = io.BytesIO()
    torch.save(model[0].state_dict(), file)
    file.seek(0)
    return file


def main(cfg):
    x, y, x_val, y_val = images(seed)
    y, y_val = y % 2, y_val % 2
    checkpoint = pretrain(cfg, x, x_val)
    encoder = make_encoder()
    encoder.load_state_dict(torch.load(checkpoint))
    encoder.requires_grad_(False).eval()
    head = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(head.parameters(), 1e-3, weight_decay=0.01)
    few, label = x[: cfg.labelled], y[: cfg.labelled]
    best, state = 0.0, None
    for epoch in range(cfg.head_epochs):
        head.train()
        loss = run_epoch(
            lambda part: head(encoder(part)), head.parameters(), optimizer, few, label, 25
        )
        head.eval()
        score = accuracy(lambda part: head(encoder(part)), x_val, y_val)
        if epoch % 4 == 3:
            print(f"head {epoch + 1:2d}  loss {loss:.4f}  val accuracy {score:.4f}")
        if score > best:
            best, state = score, {k: v.clone() for k, v in head.state_dict().items()}
    head.load_state_dict(state)
    print(f"best val accuracy {best:.4f}")


main(Config())
