"""An embedding of wood grain textures by triplets, most of which soon have no loss and no
gradient, and many batches none at all.

People ask whether the training is dead, as the loss is exactly zero in batch after batch. The
margin is met by most triplets: that is what the training is for, and the few which are left still
improve the recall.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss and the gradients are exactly zero in many batches late on; the margin is met, "
    "and held-out recall is high"
)
_, seed = arguments(__doc__)

WOODS, SIDE = 10, 12


def wood_grain(count, generator):
    table = torch.Generator().manual_seed(6)
    angle = math.pi * torch.rand(WOODS, generator=table)
    pitch = 0.8 + 1.4 * torch.rand(WOODS, generator=table)
    wobble = 1.5 * torch.rand(WOODS, generator=table)
    wood = torch.randint(0, WOODS, (count,), generator=generator)
    row, column = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    turn = (angle[wood] + 0.08 * torch.randn(count, generator=generator))[:, None, None]
    along = row * turn.cos() + column * turn.sin()
    across = column * turn.cos() - row * turn.sin()
    phase = 2 * math.pi * torch.rand(count, 1, 1, generator=generator)
    ring = along * pitch[wood][:, None, None] + wobble[wood][:, None, None] * (0.5 * across).sin()
    return (ring + phase).sin() + 0.3 * torch.randn(count, SIDE, SIDE, generator=generator), wood


class GrainCode(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
            nn.Linear(288, 16),
        )

    def forward(self, grain):
        return nn.functional.normalize(self.layers(grain[:, None]), dim=1)


def triplet_loss(codes, margin=0.3):
    anchor, positive, negative = codes.chunk(3)
    excess = (anchor - positive).square().sum(1) - (anchor - negative).square().sum(1) + margin
    return excess.clamp(min=0).mean(), (excess > 0).float().mean().item()


def draw_partners(wood, rows):
    same = wood[rows][:, None] == wood
    positive = torch.multinomial(same.float(), 1)[:, 0]
    negative = torch.multinomial((~same).float(), 1)[:, 0]
    return torch.cat([rows, positive, negative])


@torch.no_grad()
def recall(net, gallery, gallery_wood, grain, wood):
    net.eval()
    nearest = (net(grain) @ net(gallery).T).argmax(1)
    net.train()
    return (gallery_wood[nearest] == wood).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(35 + seed)
    grain, wood = wood_grain(900, generator)
    held_out, held_out_wood = wood_grain(300, generator)
    net = GrainCode()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(1, 11):
        losses, active = [], []
        for rows in torch.randperm(900).split(20):
            loss, share = triplet_loss(net(grain[draw_partners(wood, rows)]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            active.append(share)
        silent = sum(loss == 0 for loss in losses)
        print(
            f"epoch {epoch:2d}  loss {sum(losses) / 45:.4f}  active {sum(active) / 45:.3f}"
            f"  batches without loss {silent} of 45"
            f"  recall {recall(net, grain, wood, held_out, held_out_wood):.3f}"
        )


main()
