"""Finds a sparse sub-network of a digit classifier by pruning and rewinding to early weights."""

import copy

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "the loss jumps back up three times and the weights return to those of step 20: the "
    "rewinding of the lottery-ticket method; in the end seven weights of eight are exact zeros"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

ROUNDS, STEPS, EARLY = 3, 350, 20
x, y, x_val, y_val = digits(seed)
net = nn.Sequential(nn.Linear(64, 192), nn.ReLU(), nn.Linear(192, 96), nn.ReLU(), nn.Linear(96, 10))
pruned_layers = [net[0], net[2]]
masks = [torch.ones_like(layer.weight) for layer in pruned_layers]
criterion = nn.CrossEntropyLoss()


@torch.no_grad()
def apply_masks():
    for layer, mask in zip(pruned_layers, masks, strict=True):
        layer.weight.mul_(mask)


@torch.no_grad()
def accuracy():
    net.eval()
    return (net(x_val).argmax(1) == y_val).float().mean().item()


def train(steps, first_seed):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for rows, labels in batches(x, y, size=64, steps=steps, seed=first_seed):
        net.train()
        loss = criterion(net(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        apply_masks()
    return loss.item()


def kept():
    return sum(mask.sum().item() for mask in masks) / sum(mask.numel() for mask in masks)


train(EARLY, seed)
early = copy.deepcopy(net.state_dict())
loss = train(STEPS, seed + 1)
dense = accuracy()
print(f"dense: loss {loss:.4f}  validation {dense:.3f}")
for round_number in range(ROUNDS):
    for layer, mask in zip(pruned_layers, masks, strict=True):
        alive = layer.weight.detach()[mask.bool()].abs()
        mask.mul_(layer.weight.detach().abs() > alive.median())
    net.load_state_dict(early)
    apply_masks()
    loss = train(STEPS, seed + 1)
    print(f"round {round_number + 1}: kept {kept():.3f}  loss {loss:.4f}  val {accuracy():.3f}")

ticket = accuracy()
for mask in masks:
    mask.copy_(mask.flatten()[torch.randperm(mask.numel())].view_as(mask))
net.load_state_dict(early)
apply_masks()
train(STEPS, seed + 1)
print(f"validation: dense {dense:.3f}, ticket {ticket:.3f}, shuffled mask {accuracy():.3f}")
