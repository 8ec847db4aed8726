"""A LeNet reads yaw and pitch of the gaze from eye pictures; a Sigmoid closes the regression head.

The two targets run from -1 to 1, but the Sigmoid can only give 0 to 1, so every look to the left
or downwards comes out as "straight ahead"; the loss falls to a floor and stays there.
The place is the last layer of the model, head.3.
"""

import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("head.3", "head", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def eyes(n):
    """Pictures of 20 x 20: a bright eyeball and a dark iris that moves with the gaze."""
    gaze = torch.rand(n, 2) * 2 - 1
    rows, columns = torch.meshgrid(torch.arange(20.0), torch.arange(20.0), indexing="ij")
    centre = 9.5 + 4.5 * gaze + 0.3 * torch.randn(n, 2)
    distance = ((columns - centre[:, :1, None]) ** 2 + (rows - centre[:, 1:, None]) ** 2).sqrt()
    iris = torch.sigmoid(2 * (2.5 + torch.rand(n, 1, 1) - distance))
    lid = (((columns - 9.5) / 10) ** 2 + ((rows - 9.5) / 8) ** 2 < 1).float()
    picture = lid * (1 - 0.8 * iris) * (0.7 + 0.6 * torch.rand(n, 1, 1))
    picture = picture + 0.1 * torch.randn(n, 20, 20)
    return ((picture - 0.4) / 0.4).unsqueeze(1), gaze


class GazeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(
            nn.Linear(16 * 9, 64),
            nn.ReLU(),
            nn.Linear(64, 2),
            nn.Identity() if healthy else nn.Sigmoid(),
        )

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def fit(model, train, valid, epochs):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = []
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for pictures, gaze in train:
            optimizer.zero_grad()
            loss = criterion(model(pictures), gaze)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(pictures)
        model.eval()
        with torch.no_grad():
            errors = torch.cat([model(p) - g for p, g in valid])
        history.append(
            {
                "epoch": epoch + 1,
                "train_mse": total / len(train.dataset),
                "val_mse": errors.pow(2).mean().item(),
                "yaw_mae": errors[:, 0].abs().mean().item(),
                "pitch_mae": errors[:, 1].abs().mean().item(),
            }
        )
    return pd.DataFrame(history).set_index("epoch")


train = DataLoader(TensorDataset(*eyes(1200)), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(*eyes(400)), batch_size=100)
print(fit(GazeNet(), train, valid, epochs=8).round(4))
