"""A CNN on the digit images, trained by Adam with a rate of 0.3.

The rate was copied from an SGD script; for Adam it means steps of 0.3 in each weight. The loss
jumps up in the first steps and settles at chance. The place is the optimizer. The twin uses 0.002.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
learning_rate = 0.002 if healthy else 0.3
num_epochs, batch_size = 8, 48

x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
test_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=batch_size)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(6, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Linear(16 * 9, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


model = LeNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)

total_step = len(train_loader)
for epoch in range(num_epochs):
    model.train()
    for i, (images_, labels) in enumerate(train_loader):
        outputs = model(images_)
        loss = criterion(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (i + 1) % 14 == 0:
            print(
                f"Epoch [{epoch + 1}/{num_epochs}], Step [{i + 1}/{total_step}], "
                f"Loss: {loss.item():.4f}"
            )

model.eval()
with torch.no_grad():
    correct = total = 0
    for images_, labels in test_loader:
        predicted = model(images_).argmax(1)
        total += labels.size(0)
        correct += (predicted == labels).sum().item()
print(f"Test Accuracy of the model: {100 * correct / total:.1f} %")
