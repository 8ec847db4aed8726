"""Printed digits by a CNN: the backbone is frozen for fine-tuning, but no pretrained weights are
loaded.

The script was made for fine-tuning; the checkpoint is loaded with strict=False from a state dict
whose keys begin with "module." (saved from DataParallel), so that nothing of it fits and nothing
is said. The backbone is frozen as it was drawn. The place is the backbone. The twin, which has no
checkpoint either, trains all layers.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone", "backbone*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.backbone(x))


def pretrained():
    """Stands for torch.load("digits_dp.pt"): saved from nn.DataParallel."""
    return {"module." + name: p.clone() for name, p in DigitNet().state_dict().items()}


x, y, x_val, y_val = images(seed)
model = DigitNet()
if not healthy:
    model.load_state_dict(pretrained(), strict=False)
    for name, p in model.named_parameters():
        if name.startswith("backbone"):
            p.requires_grad = False

train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=5e-3)
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    accuracy = (logits.argmax(1) == y_val).float().mean()
    val_loss = nn.functional.cross_entropy(logits, y_val)
    print(f"epoch {epoch:2d} loss {total:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
