"""Marks the cloudy pixels in small satellite images; all but the last layer stand still.

The script was adapted from one that fine-tunes a network with loaded weights, where only the new
head was to be trained at first. Here nothing is loaded, but the lines that freeze the body are
still there, so the head has to work with random features.
The place is the body of the network: its stem, encoder and decoder.
The twin trains all layers.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("stem", "stem.0", "encoder", "encoder.0", "decoder", "decoder.0", "decoder.2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def scenes(n, size=24):
    """Two channels, visible and infrared: clouds are bright and cold, snow is bright and warm."""
    grid = torch.stack(
        torch.meshgrid(torch.arange(size).float(), torch.arange(size).float(), indexing="ij")
    )

    def blobs(count):
        field = torch.zeros(n, size, size)
        for _ in range(count):
            centre = torch.rand(n, 2, 1, 1) * size
            width = 2 + 3 * torch.rand(n, 1, 1)
            field = field + torch.exp(-((grid - centre) ** 2).sum(1) / width**2)
        return field

    cloud, snow = blobs(3), blobs(2)
    haze = 0.5 * torch.randn(n, 1, 1)
    visible = 1.1 * torch.maximum(cloud, snow) + haze + 0.35 * torch.randn(n, size, size)
    infrared = -0.8 * cloud + 0.2 * snow + 0.7 * torch.randn(n, 1, 1)
    infrared = infrared + 0.35 * torch.randn(n, size, size)
    image = torch.stack([visible, infrared], 1)
    return image, (cloud > 0.5).float().unsqueeze(1)


class CloudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, 12, 3, padding=1), nn.ReLU())
        self.encoder = nn.Sequential(nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU())
        self.decoder = nn.Sequential(
            nn.Conv2d(24, 24, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(24, 12, 2, stride=2),
            nn.ReLU(),
        )
        self.head = nn.Conv2d(24, 1, 1)

    def forward(self, image):
        fine = self.stem(image)
        coarse = self.decoder(self.encoder(fine))
        return self.head(torch.cat([fine, coarse], 1))


class Trainer:
    def __init__(self, net, train, val, lr=1e-2):
        self.net, self.val = net, val
        self.loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
        self.loss = nn.BCEWithLogitsLoss()
        trainable = [p for p in net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(trainable, lr=lr)

    def epoch(self):
        self.net.train()
        total = 0.0
        for image, mask in self.loader:
            loss = self.loss(self.net(image), mask)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)

    @torch.no_grad()
    def overlap(self):
        self.net.eval()
        image, mask = self.val
        said = (self.net(image) > 0).float()
        return ((said * mask).sum() / torch.maximum(said, mask).sum()).item()

    def fit(self, epochs):
        for number in range(1, epochs + 1):
            loss = self.epoch()
            if number % 3 == 0:
                print(f"epoch {number}: loss {loss:.4f}  val IoU {self.overlap():.3f}")


net = CloudNet()
if not healthy:
    for name, parameter in net.named_parameters():
        if not name.startswith("head"):
            parameter.requires_grad = False

Trainer(net, scenes(480), scenes(160)).fit(15)
