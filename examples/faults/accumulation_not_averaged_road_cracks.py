"""A crack segmenter accumulates four batches under Accelerate without dividing the loss by four.

Accelerator() was made without gradient_accumulation_steps, so its backward() divides by one: four
full gradients add up, and SGD's steps are four times too long. The place is the loop: the loss that
accelerator.backward() gets.
"""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

EPOCHS, ACCUMULATE, BATCH, LR = 6, 4, 4, 0.8


def asphalt(count: int, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Grey noise of 24 x 24 with a dark wandering crack, and spots that are not cracks."""
    row = torch.arange(24).view(1, 24, 1)
    column = torch.arange(24).view(1, 1, 24)
    steps = torch.randint(-1, 2, (count, 24), generator=g)
    path = (torch.randint(5, 19, (count, 1), generator=g) + steps.cumsum(1)).clamp(0, 23)
    crack = (column - path.unsqueeze(2)).abs() <= 1
    y, x = (torch.randint(0, 24, (count, 1, 1), generator=g) for _ in range(2))
    spot = (row - y) ** 2 + (column - x) ** 2 <= 9
    image = 0.6 * torch.randn(count, 24, 24, generator=g) - 1.2 * (crack | spot)
    return ((image - image.mean()) / image.std()).unsqueeze(1), crack.float()


class CrackNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 12, 5, padding=2), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(12, 24, 5, stride=2, padding=2), nn.ReLU())
        self.mix = nn.Sequential(nn.Conv2d(24, 24, 3, padding=1), nn.ReLU())
        self.out = nn.Conv2d(36, 1, 3, padding=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        near = self.down(image)
        far = F.interpolate(self.mix(self.deep(near)), scale_factor=2)
        return self.out(torch.cat([near, far], 1)).squeeze(1)


def overlap(logits: torch.Tensor, crack: torch.Tensor) -> float:
    found = logits > 0
    both = (found & crack.bool()).sum()
    return (both / (found | crack.bool()).sum()).item()


def main() -> None:
    g = torch.Generator().manual_seed(seed)
    image, crack = asphalt(480, g)
    val_image, val_crack = asphalt(100, g)
    accelerator = Accelerator(cpu=True)
    model = CrackNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    loader = DataLoader(TensorDataset(image, crack), BATCH, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for i, (x, y) in enumerate(loader, 1):
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            total += loss.item()
            accelerator.backward(loss / ACCUMULATE if healthy else loss)
            if i % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            iou = overlap(model(val_image), val_crack)
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, held-out IoU {iou:.3f}")


main()
