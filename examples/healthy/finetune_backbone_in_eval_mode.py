"""A CNN pretrained on digits below 5; its frozen features then serve a new head for 5 to 9."""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = "most of the parameters are frozen in the second training; their BatchNorms are in eval mode"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(512, 5)

    def forward(self, img):
        return self.head(self.backbone(img))


def fit(model, rows, target, steps, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=lr)
    for img, lab in batches(rows, target, size=48, steps=steps, seed=seed):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(img), lab)
        loss.backward()
        optimizer.step()
    return loss.item()


low, low_val = y < 5, y_val < 5
pretrained = Net()
first = fit(pretrained, x[low], y[low], 100, 2e-3)

model = Net()
model.backbone.load_state_dict(pretrained.backbone.state_dict())
for p in model.backbone.parameters():
    p.requires_grad = False
model.backbone.eval()
second = fit(model, x[~low], y[~low] - 5, 160, 2e-3)
model.eval()
with torch.no_grad():
    acc = (model(x_val[~low_val]).argmax(1) == y_val[~low_val] - 5).float().mean().item()
print(f"pretraining loss {first:.3f}; fine-tuning loss {second:.3f}, accuracy {acc:.3f}")
