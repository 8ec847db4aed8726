"""A 1-d convolutional network that adds up eight micro-batches' mean losses for each step.

The losses are not divided by eight, so the gradient is eight times that of the batch it stands
for, and so is each step of SGD. The place is the loss.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ()
PLACE = ("loop", "optimizer", "loss*")
SILENT = True
EXACT = False
EARLY = True

ACCUMULATION_STEPS = 8


class WaveNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv1d(16, 24, 5, stride=2, padding=2)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        x = torch.relu(self.conv1(x.transpose(1, 2)))
        x = torch.relu(self.conv2(x))
        return self.fc(x.amax(-1))


healthy, seed = arguments(__doc__)
x, y = waves(seed, n=1600)
x, x_val, y, y_val = x[:1280], x[1280:], y[:1280], y[1280:]
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = WaveNetwork()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(6):
    model.train()
    optimizer.zero_grad()
    epoch_loss = 0.0
    for i, (wave, shape) in enumerate(loader):
        loss = criterion(model(wave), shape)
        epoch_loss += loss.item()
        if healthy:
            loss = loss / ACCUMULATION_STEPS
        loss.backward()
        if (i + 1) % ACCUMULATION_STEPS == 0:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val)
        accuracy = (out.argmax(1) == y_val).float().mean()
epoch_loss /= len(loader)
print(f"loss {epoch_loss:.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
