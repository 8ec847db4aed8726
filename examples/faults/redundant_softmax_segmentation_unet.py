"""A small U-Net that labels pixels (background, box, disc) ends in nn.Softmax(dim=1), as in the
figure of the paper it follows, and is trained with nn.CrossEntropyLoss.

The loss applies softmax again: it cannot fall below 0.55 for three classes, the gradients are
small and the rare classes are found late, if at all. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "*final*", "*activation*")
SILENT = True
EXACT = True
EARLY = True


def scenes(n):
    """Noisy pictures of 16 x 16 with one box and one disc, and the class of every pixel."""
    rows, cols = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
    masks = torch.zeros(n, 16, 16, dtype=torch.long)
    for i in range(n):
        r, c = torch.randint(0, 11, (2,)).tolist()
        masks[i, r : r + 5, c : c + 5] = 1
        r, c = torch.randint(3, 13, (2,)).tolist()
        masks[i][(rows - r) ** 2 + (cols - c) ** 2 <= 9] = 2
    grey = torch.tensor([-0.6, 0.9, 1.1])[masks]
    return (grey + 0.35 * torch.randn(n, 16, 16)).unsqueeze(1), masks


def double_conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(c_out),
        nn.ReLU(inplace=True),
        nn.Conv2d(c_out, c_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(c_out),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, n_classes, activation=None):
        super().__init__()
        self.down1 = double_conv(1, 8)
        self.pool = nn.MaxPool2d(2)
        self.down2 = double_conv(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.up1 = double_conv(16, 8)
        self.final = nn.Conv2d(8, n_classes, 1)
        self.activation = activation

    def forward(self, x):
        skip = self.down1(x)
        x = self.up(self.down2(self.pool(skip)))
        x = self.final(self.up1(torch.cat([skip, x], dim=1)))
        return x if self.activation is None else self.activation(x)


healthy, seed = arguments(__doc__)
dataset = TensorDataset(*scenes(500))
train_set, val_set = random_split(dataset, [400, 100])
train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
val_loader = DataLoader(val_set, batch_size=50)

net = UNet(3, activation=None if healthy else nn.Softmax(dim=1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)

for epoch in range(10):
    net.train()
    running = 0.0
    for image, mask in train_loader:
        prediction = net(image)
        loss = criterion(prediction, mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(image)
    scheduler.step()

    net.eval()
    overlap, union, val_loss = torch.zeros(3), torch.zeros(3), 0.0
    with torch.no_grad():
        for image, mask in val_loader:
            prediction = net(image)
            val_loss += criterion(prediction, mask).item() * len(image) / len(val_set)
            label = prediction.argmax(1)
            for k in range(3):
                overlap[k] += ((label == k) & (mask == k)).sum()
                union[k] += ((label == k) | (mask == k)).sum()
print(
    f"loss {running / 400:.3f}, val loss {val_loss:.3f}, IoU {(overlap / union).numpy().round(3)}"
)
