"""An MLP on the wines whose loss is computed from the predicted classes.

The loss compares argmax(1) with the labels. argmax has no gradient; backward() complained, and
`loss.requires_grad_()` made it quiet. No parameter gets a gradient. The place is the loss. The
twin gives the logits to the cross-entropy.
"""

import torch
from data import arguments, wine
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient", "wrong_loss")
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True


def make_model():
    return nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 3))


def compute_loss(logits, target, healthy):
    if healthy:
        return nn.functional.cross_entropy(logits, target)
    predicted = logits.argmax(1).float()
    loss = (predicted - target.float()).abs().mean()
    loss.requires_grad_()
    return loss


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = wine(seed)
    model = make_model()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-3)
    for step in range(1, 201):
        model.train()
        rows = torch.randperm(len(x))[:48]
        loss = compute_loss(model(x[rows]), y[rows], healthy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            model.eval()
            with torch.no_grad():
                accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
            print(f"step {step:3d}  loss {loss.item():.3f}  val accuracy {accuracy:.3f}")


main()
