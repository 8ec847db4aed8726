"""A convolutional network for digits whose weights are drawn with a standard deviation of 1.

nn.init.normal_ was called without its std. The first loss is in the hundreds rather than near ln
10, and the training spends itself on bringing it down. The place is the model.
"""

import torch
from data import arguments, images
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("conv*", "fc*", "classifier*", "")
SILENT = True
EXACT = False
EARLY = True


class DigitNet(nn.Module):
    def __init__(self, std_one):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4, 64)
        self.classifier = nn.Linear(64, 10)
        self.pool = nn.MaxPool2d(2)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                if std_one:
                    nn.init.normal_(m.weight)
                else:
                    nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc(x.flatten(1)))
        return self.classifier(x)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
net = DigitNet(std_one=not healthy)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(9):
    net.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    net.eval()
    with torch.no_grad():
        outputs = net(x_val)
        val_loss = criterion(outputs, y_val).item()
        accuracy = (outputs.argmax(1) == y_val).float().mean().item()
    print(f"{epoch}: {running_loss / len(train_loader):.3f} {val_loss:.3f}")
print(f"loss {running_loss / len(train_loader):.3f}, val {val_loss:.3f}, accuracy {accuracy:.3f}")
