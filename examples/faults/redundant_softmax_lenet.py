"""LeNet with an nn.Softmax at its end, as in the pictures, and nn.CrossEntropyLoss.

The loss stays near 1.5 although images are told apart (silent). The place is the softmax.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "classifier*", "softmax", "")
SILENT = True
EXACT = True
EARLY = True


class LeNet(nn.Module):
    def __init__(self, softmax):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.pool = nn.AvgPool2d(2)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc1 = nn.Linear(64, 60)
        self.fc2 = nn.Linear(60, 10)
        self.softmax = nn.Softmax(dim=1) if softmax else nn.Identity()

    def forward(self, x):
        x = self.pool(torch.tanh(self.conv1(x)))
        x = torch.tanh(self.conv2(x)).flatten(1)
        x = torch.tanh(self.fc1(x))
        return self.softmax(self.fc2(x))


class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion

    def training_step(self, batch):
        x, y = batch
        return self.criterion(self.model(x), y)

    def fit(self, train_loader, val_loader, max_epochs):
        for epoch in range(max_epochs):
            self.model.train()
            for batch in train_loader:
                self.optimizer.zero_grad()
                loss = self.training_step(batch)
                loss.backward()
                self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                val = sum(self.training_step(batch).item() for batch in val_loader)
            print(f"epoch {epoch}: {loss.item():.3f}, {val / len(val_loader):.3f}")


healthy, seed = arguments(__doc__)
digits = load_digits()
x = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
parts = train_test_split(x, torch.tensor(digits.target), test_size=0.2, random_state=seed)
train_loader = DataLoader(TensorDataset(parts[0], parts[2]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(parts[1], parts[3]), batch_size=90)
model = LeNet(softmax=not healthy)
trainer = Trainer(model, optim.Adam(model.parameters(), lr=3e-3), nn.CrossEntropyLoss())
trainer.fit(train_loader, val_loader, max_epochs=6)
