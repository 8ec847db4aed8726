"""Each window of a vibration sensor is scaled by its own spread; one window, of a stuck sensor,
has none.

0 / 0 makes that window NaN. It comes at some step of the first epoch, and from then on all weights
are NaN. The place is the data (the first layer sees it first).
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("", "loader", "conv1*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Vibration(Dataset):
    def __init__(self, signals, states):
        self.signals, self.states = signals, states

    def __len__(self):
        return len(self.states)

    def __getitem__(self, i):
        window = self.signals[i]
        spread = window.std()
        if healthy:
            spread = spread.clamp(min=1e-3)
        return (window - window.mean()) / spread, self.states[i]


class Classifier(nn.Module):
    def __init__(self, states):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 7, padding=3)
        self.conv2 = nn.Conv1d(16, 32, 5, stride=2, padding=2)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(32, states)

    def forward(self, w):
        h = torch.relu(self.conv1(w))
        h = torch.relu(self.conv2(h))
        return self.out(self.drop(h.amax(-1)))


signals, states = waves(seed, n=1000)
signals = 0.02 * signals.transpose(1, 2) + 1.3
signals[397] = 1.3  # the plug was loose for these forty readings
train_set = Vibration(signals[:800], states[:800])
val_set = Vibration(signals[800:], states[800:])
model = Classifier(3)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
loss_function = nn.CrossEntropyLoss()
for epoch in range(12):
    model.train()
    total = 0.0
    for window, state in DataLoader(train_set, batch_size=25, shuffle=True):
        optimizer.zero_grad()
        loss = loss_function(model(window), state)
        loss.backward()
        optimizer.step()
        total += loss.item() / 32
model.eval()
hits = 0
with torch.no_grad():
    for window, state in DataLoader(val_set, batch_size=100):
        hits += (model(window).argmax(1) == state).sum().item()
print(f"loss {total:.3f}, accuracy {hits / len(val_set):.3f}")
