"""A convolutional network for digits trained by Adam with weight_decay=0.5.

A value one may give to AdamW, where it is multiplied by the rate; in Adam it is added to the
gradient and outweighs it. All weights shrink to 0 and the loss stays at ln 10. The place is the
optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer", "")
SILENT = False
EXACT = False
EARLY = True


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
model = LeNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.006, weight_decay=1e-4 if healthy else 0.5)
for epoch in range(14):
    model.train()
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        output = model(x_val)
    val_loss = criterion(output, y_val).item()
    accuracy = (output.argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
