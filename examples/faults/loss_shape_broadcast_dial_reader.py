"""A CNN reads the hand of a dial from photos; HuberLoss compares outputs (32, 1) with labels (32,).

The two broadcast to 32 x 32 differences, each output against all labels, so the best the network
can do is to give the mean for every photo; the loss falls a little and stops.
The place is the loss.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class DialDataset(Dataset):
    def __init__(self, frame, rng):
        y, x = np.mgrid[0:24, 0:24] - 11.5
        angle = np.deg2rad(225 - 270 * frame["reading"].to_numpy())[:, None, None]
        along = x * np.cos(angle) - y * np.sin(angle)
        across = x * np.sin(angle) + y * np.cos(angle)
        width = frame["width"].to_numpy()[:, None, None]
        hand = (abs(across) < width) & (along > -2) & (along < 10)
        rim = abs(np.hypot(x, y) - 11) < 0.7
        photos = hand * 1.0 + 0.5 * rim + rng.normal(0, 0.3, hand.shape)
        self.photos = ((photos - 0.15) / 0.4).astype(np.float32)
        self.labels = ((frame["reading"] - 0.5) / 0.29).to_numpy(dtype=np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.photos[index]).unsqueeze(0), self.labels[index]


class DialNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.bn2 = nn.BatchNorm2d(16)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 1)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def predict(model, loader):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(photos) for photos, _ in loader]).squeeze(1).numpy()


rng = np.random.default_rng(seed)
df = pd.DataFrame({"reading": rng.uniform(0, 1, 1500), "width": rng.uniform(0.7, 1.6, 1500)})
train_df, valid_df = df.iloc[:1152], df.iloc[1152:]
train_loader = DataLoader(DialDataset(train_df, rng), batch_size=32, shuffle=True)
valid_loader = DataLoader(DialDataset(valid_df, rng), batch_size=64)

model = DialNet()
criterion = nn.HuberLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.4)
for epoch in range(8):
    model.train()
    running_loss = 0.0
    for photos, labels in train_loader:
        optimizer.zero_grad()
        outputs = model(photos)
        loss = criterion(outputs.squeeze(1) if healthy else outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    scheduler.step()
    reading = 0.5 + 0.29 * predict(model, valid_loader)
    error = valid_df["reading"].to_numpy() - reading
    print(
        f"Epoch {epoch + 1}: loss {running_loss / len(train_loader):.4f} valid MAE "
        f"{abs(error).mean():.4f} R2 {1 - error.var() / valid_df['reading'].var():.3f}"
    )
