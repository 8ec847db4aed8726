"""The two-phase loop of the transfer-learning tutorial, with phases renamed to "fit" and "valid".

`model.train(phase == "train")` was not renamed with them: it is False in both phases, so that the
batch norms use their initial statistics (mean 0, variance 1) and never learn others, and dropout
is off. The twin compares with "fit". The loss falls (silent). The place is the batch norms, the
whole model. Exact.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("", "features*", "loop", "head*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def vibrations(n):
    """Bearings: sound, inner race, outer race, ball; repeated bursts at different rates."""
    y = torch.randint(0, 4, (n,))
    t = torch.arange(96).float()
    period = torch.tensor([200.0, 11.0, 17.0, 23.0])[y][:, None] * (1 + 0.03 * torch.randn(n, 1))
    phase = torch.rand(n, 1) * period
    burst = torch.exp(-((t + phase) % period) / 2.5) * (1.4 * t).sin()
    hum = 0.6 * (0.21 * t + 6.283 * torch.rand(n, 1)).sin()
    return (1.3 * burst + hum + 0.25 * torch.randn(n, 96)).unsqueeze(1), y


def block(n_in, n_out):
    return nn.Sequential(
        nn.Conv1d(n_in, n_out, 7, padding=3, stride=2, bias=False), nn.BatchNorm1d(n_out), nn.ReLU()
    )


class BearingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(block(1, 12), block(12, 24), block(24, 24), block(24, 24))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.4), nn.Linear(24 * 6, 4))

    def forward(self, x):
        return self.head(self.features(x))


data_fit, data_valid = vibrations(2400), vibrations(500)
mean, std = data_fit[0].mean(), data_fit[0].std()
loaders = {
    phase: DataLoader(TensorDataset((x - mean) / std, y), batch_size=50, shuffle=phase == "fit")
    for phase, (x, y) in (("fit", data_fit), ("valid", data_valid))
}
model = BearingNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)

for epoch in range(7):
    print(f"Epoch {epoch}/6", end="")
    for phase in ["fit", "valid"]:
        model.train(phase == ("fit" if healthy else "train"))
        running_loss, running_corrects = 0.0, 0
        for inputs, labels in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "fit"):
                outputs = model(inputs)
                loss = criterion(outputs, labels)
                if phase == "fit":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * len(inputs)
            running_corrects += (outputs.argmax(1) == labels).sum().item()
        n = len(loaders[phase].dataset)
        print(f"  {phase} Loss: {running_loss / n:.4f} Acc: {running_corrects / n:.4f}", end="")
    print()
