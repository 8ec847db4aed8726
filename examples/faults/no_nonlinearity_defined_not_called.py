"""A strided 1-d convolution net tells the rhythm of signals; self.relu is made in __init__ and
never called in forward.

All layers fold into one affine map, and since the phase of every signal is random, no affine map
tells the rhythms apart: the loss stays near that of guessing. The place is the model.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("conv*", "fc*", "bn*", "net*", "")
SILENT = False
EXACT = True
EARLY = True


class RhythmNet(nn.Module):
    def __init__(self, n_class=4, forgetful=True):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, stride=2)
        self.bn1 = nn.BatchNorm1d(16)
        self.conv2 = nn.Conv1d(16, 24, 5, stride=2)
        self.bn2 = nn.BatchNorm1d(24)
        self.relu = nn.ReLU()
        self.fc1 = nn.Linear(24 * 9, 32)
        self.fc2 = nn.Linear(32, n_class)
        self.forgetful = forgetful

    def forward(self, x):
        if self.forgetful:
            x = self.bn1(self.conv1(x))
            x = self.bn2(self.conv2(x))
            x = self.fc1(x.flatten(1))
        else:
            x = self.relu(self.bn1(self.conv1(x)))
            x = self.relu(self.bn2(self.conv2(x)))
            x = self.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def heartbeats(n, length=48):
    rhythm = torch.randint(0, 4, (n,))
    rate = torch.tensor([0.35, 0.6, 0.95, 1.4])[rhythm].unsqueeze(1)
    phase = 6.283 * torch.rand(n, 1)
    wave = torch.sin(rate * torch.arange(length) + phase) * 1.4
    return (wave + 0.3 * torch.randn(n, length)).unsqueeze(1), rhythm


def run_epoch(loader, model, criterion, optimizer=None):
    model.train(optimizer is not None)
    loss_sum = correct = seen = 0
    with torch.set_grad_enabled(optimizer is not None):
        for signal, rhythm in loader:
            out = model(signal)
            loss = criterion(out, rhythm)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(signal)
            correct += (out.argmax(1) == rhythm).sum().item()
            seen += len(signal)
    return loss_sum / seen, correct / seen


healthy, seed = arguments(__doc__)
signals, rhythms = heartbeats(3000)
train_loader = DataLoader(TensorDataset(signals[:2400], rhythms[:2400]), 64, shuffle=True)
valid_loader = DataLoader(TensorDataset(signals[2400:], rhythms[2400:]), 200)
net = RhythmNet(forgetful=not healthy)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    train_loss, train_acc = run_epoch(train_loader, net, nn.CrossEntropyLoss(), optimizer)
    valid_loss, valid_acc = run_epoch(valid_loader, net, nn.CrossEntropyLoss())
    scheduler.step()
print(
    f"loss {train_loss:.3f}, accuracy {train_acc:.3f}, "
    f"valid loss {valid_loss:.3f}, valid accuracy {valid_acc:.3f}"
)
