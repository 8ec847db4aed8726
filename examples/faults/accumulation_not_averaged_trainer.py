"""Sixteen small batches make one step of SGD with momentum, and each adds its whole loss.

The rate is one for the mean of all of them. The place is the loop: loss / 16 is missing.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.norm = nn.BatchNorm2d(12)
        self.head = nn.Linear(12 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = nn.functional.max_pool2d(x, 2)
        return self.head(x.flatten(1))


class Trainer:
    def __init__(self, model, lr, accumulate, divide):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()
        self.accumulate = accumulate
        self.divide = divide

    def fit(self, loader, epochs):
        batch_idx = 0
        for epoch in range(epochs):
            for x, y in loader:
                loss = self.criterion(self.model(x), y)
                if self.divide:
                    loss = loss / self.accumulate
                loss.backward()
                batch_idx += 1
                if batch_idx % self.accumulate == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
        return loss.item()


healthy, seed = arguments(__doc__)
data = load_digits()
images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16 - 0.3
dataset = TensorDataset(images, torch.tensor(data.target))
trainer = Trainer(Net(), lr=0.1, accumulate=16, divide=healthy)
loss = trainer.fit(DataLoader(dataset, batch_size=8, shuffle=True, drop_last=True), epochs=8)
print(f"loss {loss:.3f}")
