"""A one-dimensional CNN for three kinds of vibration, recorded one kind after the other.

The three recordings are cut into windows and joined, and the batches follow that order: a third of
each epoch shows one kind only, and the network forgets the others. The place is the data (the
order). The twin permutes the windows in each epoch.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

windows, kind = waves(seed, n=1200, length=32)
windows = windows.transpose(1, 2)
x_val, y_val = windows[900:], kind[900:]
recordings = [windows[:900][kind[:900] == k] for k in range(3)]
x = torch.cat(recordings)
y = torch.cat([torch.full((len(r),), k) for k, r in enumerate(recordings)])


class VibrationNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv1d(16, 24, 5, padding=2)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x)).mean(2)
        return self.head(x)


model = VibrationNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
BATCH = 10

for epoch in range(10):
    order = torch.randperm(len(x)) if healthy else torch.arange(len(x))
    model.train()
    for start in range(0, len(x), BATCH):
        rows = order[start : start + BATCH]
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if start // BATCH % 30 == 0:
            print(f"  {epoch}/{start // BATCH}: {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    said = torch.bincount(out.argmax(1), minlength=3).tolist()
    accuracy = (out.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch}: val {criterion(out, y_val):.3f} accuracy {accuracy:.3f} said {said}")
