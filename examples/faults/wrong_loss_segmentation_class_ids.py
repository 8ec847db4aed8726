"""A segmentation net with one output channel that regresses the number of the class by MSE.

Four kinds of ground have no order, but a pixel between 0 and 3 becomes 1 or 2. The twin has a
channel for each class and cross entropy. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Fields(Dataset):
    """Maps of 24 x 24 pixels with four textures in rectangles, two noisy bands."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.mask = torch.zeros(n, 24, 24, dtype=torch.long)
        for mask in self.mask:
            for _ in range(5):
                top, left = torch.randint(0, 18, (2,), generator=g).tolist()
                height, width = torch.randint(5, 14, (2,), generator=g).tolist()
                kind = int(torch.randint(0, 4, (1,), generator=g))
                mask[top : top + height, left : left + width] = kind
        bands = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
        noise = 1.1 * torch.randn(n, 2, 24, 24, generator=g)
        self.image = bands[self.mask].permute(0, 3, 1, 2) + noise

    def __len__(self):
        return len(self.mask)

    def __getitem__(self, i):
        return self.image[i], self.mask[i]


class Segmenter(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=2, dilation=2),
            nn.BatchNorm2d(16),
            nn.ReLU(),
        )
        self.to_mask = nn.Conv2d(16, outputs, 1)

    def forward(self, image):
        return self.to_mask(self.body(image))


model = Segmenter(4 if healthy else 1)
criterion = nn.CrossEntropyLoss() if healthy else nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
train = DataLoader(Fields(480, 50 + seed), batch_size=16, shuffle=True)
test = DataLoader(Fields(96, 950 + seed), batch_size=48)


def to_classes(out):
    return out.argmax(1) if healthy else out.squeeze(1).round().clamp(0, 3).long()


for epoch in range(8):
    model.train()
    for image, mask in train:
        out = model(image)
        loss = criterion(out, mask) if healthy else criterion(out.squeeze(1), mask.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    inter, union = torch.zeros(4), torch.zeros(4)
    with torch.no_grad():
        for image, mask in test:
            predicted = to_classes(model(image))
            for k in range(4):
                inter[k] += ((predicted == k) & (mask == k)).sum()
                union[k] += ((predicted == k) | (mask == k)).sum()
    print(f"epoch {epoch}: loss {loss.item():.3f}, mean IoU {(inter / union).mean():.3f}")
