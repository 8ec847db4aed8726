"""Trains two tasks that pull apart with projected gradients (PCGrad), written by hand."""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "no backward() is called: each task's gradients are computed apart, cut where they point "
    "against each other and put into .grad by hand, so .grad is no loss's gradient"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(128, 48),
            nn.ReLU(),
        )
        self.digit, self.ink = nn.Linear(48, 10), nn.Linear(48, 1)

    def forward(self, x):
        shared = self.body(x)
        return self.digit(shared), self.ink(shared).squeeze(1)


def sideways_ink(pictures):
    columns = torch.arange(8.0)
    dark = pictures.squeeze(1) - pictures.min()
    return (dark.sum(1) * columns).sum(1) / dark.sum((1, 2))


def task_losses(model, x, digit, ink):
    logits, guess = model(x)
    return F.cross_entropy(logits, digit), F.mse_loss(guess, ink)


def put_projected_gradients(model, losses):
    shared = list(model.body.parameters())
    heads = [list(model.digit.parameters()), list(model.ink.parameters())]
    flat = []
    for loss, head in zip(losses, heads, strict=False):
        grads = torch.autograd.grad(loss, shared + head, retain_graph=True)
        flat.append(torch.cat([g.flatten() for g in grads[: len(shared)]]))
        for parameter, grad in zip(head, grads[len(shared) :], strict=False):
            parameter.grad = grad
    inner = flat[0] @ flat[1]
    joint = flat[0] + flat[1]
    if inner < 0:
        joint = (
            flat[0]
            - inner / flat[1].square().sum() * flat[1]
            + flat[1]
            - inner / flat[0].square().sum() * flat[0]
        )
    for parameter, grad in zip(shared, joint.split([p.numel() for p in shared]), strict=False):
        parameter.grad = grad.view_as(parameter)
    return bool(inner < 0)


x, digit, x_val, digit_val = images(seed)
ink, ink_val = sideways_ink(x), sideways_ink(x_val)
centre, spread = ink.mean(), ink.std()
ink, ink_val = (ink - centre) / spread, (ink_val - centre) / spread
model = TwoTasks()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=24)
for epoch in range(24):
    model.train()
    conflicts, steps = 0, 0
    for rows in torch.randperm(len(x)).split(64):
        losses = task_losses(model, x[rows], digit[rows], ink[rows])
        conflicts += put_projected_gradients(model, losses)
        optimizer.step()
        steps += 1
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits, guess = model(x_val)
    accuracy = (logits.argmax(1) == digit_val).float().mean()
    r2 = 1 - F.mse_loss(guess, ink_val) / ink_val.var()
    if epoch % 4 == 3:
        print(
            f"epoch {epoch + 1}: accuracy {accuracy:.3f}, R2 of the ink {r2:.3f}, "
            f"conflicts in {conflicts} of {steps} steps"
        )

share = torch.bincount(digit_val).max() / len(digit_val)
print(f"digits {accuracy:.3f} (most frequent: {share:.3f}), ink R2 {r2:.3f} (mean: 0)")
