"""A CNN for digit images whose convolution biases start at -6.

The second convolution's ReLUs never fire, on no image: nothing reaches the classifier but its own
bias, and the loss stays at the logarithm of ten. The place is the model.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("features*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)


class Net(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(16 * 4, 10)
        for m in self.features:
            if isinstance(m, nn.Conv2d):
                nn.init.constant_(m.bias, bias)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


model = Net(bias=0.0 if healthy else -6.0)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for img, lab in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(img), lab)
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for img, lab in val_loader:
            correct += (model(img).argmax(1) == lab).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} val acc {correct / len(y_val):.3f}")
