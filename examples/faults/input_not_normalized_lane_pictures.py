"""A network steers by frames of 0 to 255; its to-tensor step scales only bytes, these are floats.

The person converted the frames to float32 while loading them. The transform, like that of
torchvision, scales only arrays of bytes to 0 to 1 and hands floats through as they are, so the
network sees values up to 255. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input",)
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

HEIGHT, WIDTH = 16, 24


def draw_frames(count, rng):
    """Grey frames with a bent lane; the steering is given by its bend and its offset."""
    bend, offset = rng.uniform(-1, 1, count), rng.uniform(-1, 1, count)
    rows = np.linspace(0, 1, HEIGHT)[None, :, None]
    middle = WIDTH / 2 + 4 * offset[:, None, None] + 6 * bend[:, None, None] * (1 - rows) ** 2
    columns = np.arange(WIDTH)[None, None, :]
    lane = np.exp(-(((columns - middle) / 1.5) ** 2))
    light = rng.uniform(0.6, 1.0, (count, 1, 1))
    frames = 70 * light + 150 * light * lane + rng.normal(0, 12, lane.shape)
    steering = 0.8 * bend + 0.4 * offset + rng.normal(0, 0.03, count)
    return np.clip(frames, 0, 255).astype(np.uint8), steering.astype(np.float32)


class ToTensor:
    def __call__(self, picture):
        tensor = torch.from_numpy(picture)
        if tensor.dtype == torch.uint8:
            tensor = tensor.float().div(255)
        return tensor.unsqueeze(0)


class Standardize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        return (tensor - self.mean) / self.std


class DriveLog(Dataset):
    def __init__(self, frames, steering, transform):
        self.frames = frames if healthy else frames.astype(np.float32)
        self.steering = steering
        self.transform = transform

    def __len__(self):
        return len(self.steering)

    def __getitem__(self, i):
        picture = self.frames[i]
        for step in self.transform:
            picture = step(picture)
        return picture, self.steering[i]


class Pilot(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2), nn.Tanh(), nn.Conv2d(8, 16, 3, stride=2), nn.Tanh()
        )
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(16 * 2 * 4, 32), nn.Tanh(), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.head(self.features(x)).squeeze(1)


def main():
    frames, steering = draw_frames(1600, np.random.default_rng(seed))
    log = DriveLog(frames, steering, [ToTensor(), Standardize(0.32, 0.17)])
    train = DataLoader(Subset(log, range(1200)), batch_size=32, shuffle=True)
    val = DataLoader(Subset(log, range(1200, 1600)), batch_size=400)
    pilot = Pilot()
    optimizer = torch.optim.SGD(pilot.parameters(), lr=0.03, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)
    for epoch in range(15):
        pilot.train()
        for pictures, wanted in train:
            loss = nn.functional.mse_loss(pilot(pictures), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        pilot.eval()
        with torch.no_grad():
            pictures, wanted = next(iter(val))
            error = pilot(pictures) - wanted
        explained = 1 - error.var() / wanted.var()
        mae = error.abs().mean()
        print(f"epoch {epoch:2d} batch loss {loss:.4f} val mae {mae:.3f} R2 {explained:.3f}")


main()
