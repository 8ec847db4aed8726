"""Paints a texture by moving the pixels of a noise picture until its Gram matrices fit."""

import torch
from data import arguments
from torch import nn

ODD = (
    "no weight of the network is trained and none ever was: random filters are enough for "
    "textures; the optimizer holds only the pixels, and L-BFGS takes several closures a step"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIZE = 32


def weave():
    """Slanted threads of two colours with a little dirt."""
    rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    slanted = torch.sin(2 * torch.pi * (rows + columns) / 8)
    crossing = torch.sin(2 * torch.pi * (rows - columns) / 16)
    picture = torch.stack([slanted, crossing, 0.5 * slanted * crossing])
    return (picture + 0.05 * torch.randn(3, SIZE, SIZE)).unsqueeze(0)


def random_filters():
    layers = nn.ModuleList(
        nn.Conv2d(3, 24, size, padding=size // 2, padding_mode="circular") for size in (3, 5, 7, 11)
    )
    for layer in layers:
        nn.init.normal_(layer.weight, std=layer.weight[0].numel() ** -0.5)
    return layers.requires_grad_(False).eval()


def grams(filters, picture):
    found = []
    for layer in filters:
        maps = layer(picture).relu().flatten(2)[0]
        found.append(maps @ maps.T / maps.shape[1])
    return found


def distance(ours, theirs):
    return sum((a - b).square().sum() / b.square().sum() for a, b in zip(ours, theirs, strict=True))


texture = weave()
filters, other_filters = random_filters(), random_filters()
wanted = grams(filters, texture)
wanted_by_others = grams(other_filters, texture)

start = torch.randn_like(texture) * texture.std((2, 3), keepdim=True)
pixels = nn.Parameter(start.clone())
optimizer = torch.optim.LBFGS([pixels], lr=1.0, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = distance(grams(filters, pixels), wanted)
    loss.backward()
    return loss


for step in range(25):
    loss = optimizer.step(closure)
    if step % 5 == 4:
        with torch.no_grad():
            unseen = distance(grams(other_filters, pixels), wanted_by_others)
        print(f"step {step + 1:2d}  distance {loss.item():.5f}  by unseen filters {unseen:.5f}")

with torch.no_grad():
    before = distance(grams(other_filters, start), wanted_by_others).item()
    after = distance(grams(other_filters, pixels), wanted_by_others).item()
print(f"distance by filters never optimised for: noise {before:.3f}, painted {after:.4f}")
