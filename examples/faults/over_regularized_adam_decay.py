"""Adam(weight_decay=0.3) on a GRU that reads waves: the penalty is larger than what the data say.

Weights go to nearly 0 and stay there. The place is the optimizer.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer", "gru*", "fc*")
SILENT = False
EXACT = False
EARLY = True


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 5, padding=2)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.fc = nn.Linear(32, 3)

    def forward(self, x):
        x = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        out, _ = self.gru(x)
        return self.fc(out[:, -1])


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    x, y = waves(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
    model = WaveNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5 if healthy else 0.3)
    for epoch in range(8):
        hits = 0
        for data, target in loader:
            output = model(data)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (output.argmax(1) == target).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {hits / len(x):.3f}")
