"""Trains two nets on digits of which 40 % have wrong labels; each picks the other's rows."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = (
    "four in ten training labels are wrong, so training accuracy stays near 0.6 and far under "
    "that of validation; the rows with the largest losses are thrown out of each batch (co- "
    "teaching)"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

WRONG, EPOCHS, WARM = 0.4, 20, 6
x, true_y, x_val, y_val = images(seed)
spoiled = torch.rand(len(true_y)) < WRONG
y = torch.where(spoiled, (true_y + torch.randint(1, 10, true_y.shape)) % 10, true_y)


def classifier():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(128, 10),
    )


def row_losses(net, pictures, labels):
    return nn.functional.cross_entropy(net(pictures), labels, reduction="none")


@torch.no_grad()
def accuracy(net, pictures, labels):
    net.eval()
    return (net(pictures).argmax(1) == labels).float().mean().item()


def train(pupils):
    """Co-teaching for two pupils; a single one trains on all rows."""
    optimizers = [torch.optim.Adam(net.parameters(), lr=2e-3) for net in pupils]
    per_epoch = len(x) // 64
    for step, (pictures, labels) in enumerate(
        batches(x, y, size=64, steps=EPOCHS * per_epoch, seed=seed)
    ):
        epoch = step // per_epoch
        for net in pupils:
            net.train()
        losses = [row_losses(net, pictures, labels) for net in pupils]
        kept = 64
        if len(pupils) == 2:
            kept = round(64 * (1 - WRONG * min(1, epoch / WARM)))
        small = [loss.detach().argsort()[:kept] for loss in losses]
        for mine, optimizer in enumerate(optimizers):
            loss = losses[mine][small[len(pupils) - 1 - mine]].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % (4 * per_epoch) == 4 * per_epoch - 1:
            print(
                f"epoch {epoch}  kept {kept}  loss {loss.item():.3f}  "
                f"given labels {accuracy(pupils[0], x, y):.3f}  "
                f"validation {accuracy(pupils[0], x_val, y_val):.3f}"
            )


alone, pair = [classifier()], [classifier(), classifier()]
train(pair)
train(alone)
print(
    f"clean validation digits: one net on all rows {accuracy(alone[0], x_val, y_val):.3f}, "
    f"co-teaching {accuracy(pair[0], x_val, y_val):.3f} and {accuracy(pair[1], x_val, y_val):.3f}"
)
