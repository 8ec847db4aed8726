"""Field parcels are segmented by a net in which each layer gets the sum of all layers before it,
so the gradient doubles from layer to layer.

The dense connections of DenseNet were rebuilt with additions: the input of layer k is the plain sum
of k earlier outputs, with no norm and no mean. Over 16 layers activations and gradients grow a
thousandfold and more, and the first steps throw the weights away. The place is model.layers.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ()
PLACE = ("stem", "layers", "layers.*", "model")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    depth: int = 16
    width: int = 12
    lr: float = 0.1
    epochs: int = 12
    batch_size: int = 16
    join: str = "mean" if healthy else "sum"


def make_parcels(n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    rows, cols = np.mgrid[0:12, 0:12]
    images = rng.normal(0, 0.5, (n, 3, 12, 12))
    masks = np.zeros((n, 1, 12, 12))
    for image, mask in zip(images, masks, strict=True):
        a, b = rng.uniform(3, 9, 2)
        h, w = rng.uniform(2, 4, 2)
        inside = (abs(rows - a) < h) & (abs(cols - b) < w)
        mask[0][inside] = 1
        image[:] += rng.normal(0, 0.3, (3, 1, 1))
        image[1] += inside * 1.3
        image[0] -= inside * 0.5 * (rows % 2)
    images = (images - images.mean((0, 2, 3), keepdims=True)) / images.std((0, 2, 3), keepdims=True)
    return torch.tensor(images, dtype=torch.float32), torch.tensor(masks, dtype=torch.float32)


class ParcelNet(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.join = config.join
        self.stem = nn.Conv2d(3, config.width, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Conv2d(config.width, config.width, 3, padding=1) for _ in range(config.depth)
        )
        self.head = nn.Conv2d(config.width, 1, 1)
        for conv in self.layers:
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            nn.init.zeros_(conv.bias)

    def forward(self, image: Tensor) -> Tensor:
        outputs = [F.relu(self.stem(image))]
        for conv in self.layers:
            outputs.append(F.relu(conv(self.joined(outputs))))
        return self.head(self.joined(outputs))

    def joined(self, outputs: list[Tensor]) -> Tensor:
        return getattr(torch.stack(outputs), self.join)(0)


@torch.no_grad()
def mean_iou(model: nn.Module, images: Tensor, masks: Tensor) -> float:
    model.eval()
    found, wanted = model(images) > 0, masks > 0.5
    model.train()
    return ((found & wanted).sum() / (found | wanted).sum().clamp(min=1)).item()


def main() -> None:
    config = Config()
    images, masks = make_parcels(320, np.random.default_rng(seed))
    loader = DataLoader(
        TensorDataset(images[:240], masks[:240]), config.batch_size, shuffle=True, drop_last=True
    )
    model = ParcelNet(config)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9)
    for epoch in range(config.epochs):
        total = 0.0
        for image, mask in loader:
            loss = F.binary_cross_entropy_with_logits(model(image), mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        iou = mean_iou(model, images[240:], masks[240:])
        print(f"epoch {epoch + 1:2d}  loss {total / len(loader):.4g}  validation IoU {iou:.3f}")


main()
