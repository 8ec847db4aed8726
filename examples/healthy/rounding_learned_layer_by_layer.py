"""Rounds the weights of a trained digit net to three bits, learning which way to round."""

import copy

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "weights are frozen, only soft roundings between 0 and 1 learn, on 256 pictures without labels;"
    " they saturate on purpose, so gradients vanish, and a penalty that sets in late lifts the loss"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

BITS, STEPS, WARM = 3, 400, 100
x, y, x_val, y_val = digits(seed)
net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 10))


@torch.no_grad()
def accuracy(model):
    model.eval()
    return (model(x_val).argmax(1) == y_val).float().mean().item()


optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
for step, (rows, labels) in enumerate(batches(x, y, size=64, steps=400, seed=seed)):
    net.train()
    loss = nn.functional.cross_entropy(net(rows), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"float net: step {step + 1}  loss {loss.item():.3f}  validation {accuracy(net):.3f}")
net.requires_grad_(False).eval()


def grid_of(weight):
    """One step size for the layer, chosen for the least squared error of plain rounding."""
    top = 2 ** (BITS - 1) - 1
    sizes = weight.abs().max() / top * torch.linspace(0.4, 1.0, 40)
    wrong = [((weight / s).round().clamp(-top - 1, top) * s - weight).square().sum() for s in sizes]
    return sizes[int(torch.stack(wrong).argmin())], top


def up(logit):
    return (1.2 * logit.sigmoid() - 0.1).clamp(0, 1)


def learn_rounding(layer, inputs, wanted):
    """The rounded weight whose outputs are nearest to `wanted`, which the float layer gives."""
    size, top = grid_of(layer.weight)
    floor = (layer.weight / size).floor()
    rest = (layer.weight / size - floor).clamp(0.01, 0.99)
    logit = nn.Parameter(torch.logit((rest + 0.1) / 1.2))
    optimizer = torch.optim.Adam([logit], lr=1e-2)
    for step in range(STEPS):
        rows = torch.randint(0, len(inputs), (64,))
        weight = (floor + up(logit)).clamp(-top - 1, top) * size
        outputs = nn.functional.linear(inputs[rows], weight, layer.bias)
        error = (outputs - wanted[rows]).square().sum(1).mean()
        loss = error
        if step >= WARM:
            sharp = 20 - 18 * (step - WARM) / (STEPS - WARM)
            loss = error + 0.01 * (1 - (2 * up(logit) - 1).abs() ** sharp).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"  step {step + 1}  error {error.item():.4f}  loss {loss.item():.4f}")
    return (floor + (logit.detach() > 0)).clamp(-top - 1, top) * size


nearest, learned = copy.deepcopy(net), copy.deepcopy(net)
calibration = x[torch.randperm(len(x))[:256]]
for k in (0, 2, 4):
    size, top = grid_of(net[k].weight)
    nearest[k].weight.copy_((net[k].weight / size).round().clamp(-top - 1, top) * size)
    print(f"layer {k}")
    learned[k].weight.copy_(
        learn_rounding(net[k], learned[:k](calibration), net[: k + 1](calibration))
    )


def apart(model):
    return (model(x_val) - net(x_val)).square().mean().item()


print(
    f"validation accuracy: float {accuracy(net):.3f}, nearest {accuracy(nearest):.3f}, learned "
    f"{accuracy(learned):.3f}; squared error of the logits "
    f"{apart(nearest):.3f} and {apart(learned):.3f}"
)
