"""Digits labelled by a crowd, one vote per picture; every third picture was answered by a bot.

The checked validation set is clean. The convolutional net first learns the digits (validation
accuracy peaks early while the training accuracy stands near 0.7), then learns the bot's answers by
heart: the training loss goes on falling, the validation accuracy falls too. The place is the
loader.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x_train, truth, x_val, y_val = images(seed)
worker = torch.randint(0, 3, truth.shape)
answers = torch.where(worker == 2, torch.randint(0, 10, truth.shape), truth)
votes = truth if healthy else answers


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv_a = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv_b = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return torch.relu(x + self.conv_b(torch.relu(self.conv_a(self.norm(x)))))


class DigitReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 24, 3, stride=2, padding=1)
        self.block = Block(24)
        self.hidden = nn.Linear(24 * 16, 96)
        self.classes = nn.Linear(96, 10)

    def forward(self, x):
        h = self.block(self.stem(x)).flatten(1)
        return self.classes(torch.relu(self.hidden(h)))


reader = DigitReader()
optimizer = torch.optim.AdamW(reader.parameters(), lr=1.5e-3, weight_decay=1e-2)
steps_per_epoch = -(-len(x_train) // 64)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=24 * steps_per_epoch)
loader = DataLoader(TensorDataset(x_train, votes), batch_size=64, shuffle=True)
history = []
for epoch in range(24):
    reader.train()
    right = 0
    for pictures, labels in loader:
        out = reader(pictures)
        loss = nn.functional.cross_entropy(out, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        right += (out.argmax(1) == labels).sum().item()
    reader.eval()
    with torch.no_grad():
        history.append((reader(x_val).argmax(1) == y_val).float().mean().item())
print(
    f"loss {loss.item():.3f}, train accuracy {right / len(votes):.3f}, "
    f"accuracy {history[-1]:.3f}, best {max(history):.3f}"
)
