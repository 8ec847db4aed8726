"""A camera-trap classifier lists its images by annotation: pictures of herds come once per animal.

The list takes the image of every annotation row instead of every image once: pictures with forty
boxes fill most of each epoch, and those with one animal, which are the hard ones, are seldom seen.
The place is the input: the data set's list of images.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE, SPECIES = 20, 4


@dataclass(frozen=True)
class Annotation:
    image_id: int
    corner: tuple[int, int]
    species: int


def shoot(count: int, r: np.random.Generator) -> tuple[np.ndarray, list[Annotation]]:
    """Noisy pictures of one species each: nine in ten of one animal, one of a herd."""
    bar = np.outer(np.arange(5) == 2, np.ones(5))
    shapes = np.stack([bar, bar.T, np.eye(5), np.eye(5)[::-1]])
    images = r.normal(0, 0.5, (count, SIDE, SIDE))
    annotations = []
    for i in range(count):
        species = int(r.integers(SPECIES))
        animals = int(r.integers(30, 60)) if r.random() < 0.1 else 1
        for _ in range(animals):
            top, left = (int(v) for v in r.integers(0, SIDE - 5, 2))
            patch = images[i, top : top + 5, left : left + 5]
            np.maximum(patch, 1.3 * shapes[species] + 0.3 * patch, out=patch)
            annotations.append(Annotation(i, (top, left), species))
    return images.astype(np.float32), annotations


class TrapPictures(Dataset):
    def __init__(self, images: np.ndarray, annotations: list[Annotation], once: bool) -> None:
        self.images = torch.from_numpy(images).unsqueeze(1)
        self.species = {a.image_id: a.species for a in annotations}
        ids = [a.image_id for a in annotations]
        self.ids = sorted(set(ids)) if once else ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image_id = self.ids[index]
        return self.images[image_id], self.species[image_id]


def main() -> None:
    r = np.random.default_rng(seed)
    train_set = TrapPictures(*shoot(400, r), once=healthy)
    val_set = TrapPictures(*shoot(400, r), once=True)
    x_val = val_set.images
    y_val = torch.tensor([val_set.species[i] for i in val_set.ids])
    loader = DataLoader(train_set, batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(24, SPECIES),
    )  # fmt: skip
    steps = 320
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    scheduler, done = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps), 0
    while done < steps:
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            done += 1
            if done % 80 == 0:
                model.eval()
                with torch.no_grad():
                    accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
                model.train()
                print(f"step {done}: loss {loss.item():.3f}, held-out accuracy {accuracy:.3f}")
            if done == steps:
                break


main()
