"""An MLP on the digits whose optimizer steps a model that the loss does not use.

The model is copied for the device after the optimizer was made, the loop trains through the copy,
and the optimizer's own parameters have no gradient at any step. The place is the optimizer. The
twin makes the optimizer from the model that is used.
"""

import copy

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True


def build():
    return nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(), nn.Linear(64, 10))


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = digits(seed)
    template = build()
    model = copy.deepcopy(template)
    optimizer = torch.optim.Adagrad((model if healthy else template).parameters(), lr=0.02)
    for step, (xb, yb) in enumerate(batches(x, y, size=100, steps=250, seed=seed), 1):
        loss = nn.functional.cross_entropy(model(xb), yb)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            model.eval()
            with torch.no_grad():
                accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
            model.train()
            print(f"step {step}: loss {loss.item():.3f}  val accuracy {accuracy:.3f}")


main()
