"""An encoder-decoder marks scratches on brushed metal, where one pixel in a hundred is scratched.

The cross-entropy over all pixels is unweighted: the net calls nearly all pixels clean and is right
on 99 % of them, but finds hardly any scratch. The twin weighs the scratched pixels. The place is
the loss (or the loader that could have drawn more of them).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "loader", "", "input")
SILENT = True
EXACT = False
EARLY = False


def metal(n, g):
    """Plates of 24 x 24 pixels, half of them with one faint scratch of 5 to 12 pixels."""
    brushed = torch.randn(n, 1, 24, generator=g).expand(n, 24, 24) * 0.5
    plates = brushed + torch.randn(n, 24, 24, generator=g) * 0.8
    masks = torch.zeros(n, 24, 24)
    for i in range(n):
        if torch.rand((), generator=g) < 0.75:
            length = int(torch.randint(5, 13, (), generator=g))
            r, c = torch.randint(0, 24 - length, (2,), generator=g).tolist()
            steps = torch.arange(length)
            masks[i, r + steps, c + steps] = 1
    plates = plates + 1.1 * masks
    return ((plates - plates.mean()) / plates.std()).unsqueeze(1), masks.unsqueeze(1)


class ScratchNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU())
        self.up = nn.Sequential(nn.Conv2d(3 * width, width, 3, padding=1), nn.ReLU())
        self.mark = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.down1(x)
        coarse = self.down2(F.avg_pool2d(fine, 2))
        coarse = F.interpolate(coarse, scale_factor=2, mode="nearest")
        return self.mark(self.up(torch.cat([fine, coarse], 1)))


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
train = TensorDataset(*metal(800, g))
val_plates, val_masks = metal(200, g)
share = train.tensors[1].mean()
criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - share) / share if healthy else None)

net = ScratchNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(10):
    net.train()
    for plates, masks in DataLoader(train, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(net(plates), masks)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        logits = net(val_plates)
        val_loss = criterion(logits, val_masks)
        found = ((logits > 0) & (val_masks > 0)).sum() / val_masks.sum()
        right = ((logits > 0) == (val_masks > 0)).float().mean()
    print(
        f"epoch {epoch}: loss {loss:.4f}, val loss {val_loss:.4f}, "
        f"pixel accuracy {right:.3f}, recall {found:.3f}"
    )
