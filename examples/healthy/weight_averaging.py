"""The mean of the weights over the last epochs (SWA) is kept beside the model."""

import torch
from data import arguments, waves
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a second model that is never trained, a rate that goes up, passes for batch norm only"


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2), nn.BatchNorm1d(16), nn.ReLU(), nn.AdaptiveAvgPool1d(10)
        )
        self.head = nn.Linear(160, 3)

    def forward(self, x):
        return self.head(self.body(x.transpose(1, 2)).flatten(1))


_, seed = arguments(__doc__)
x, y = waves(seed)
loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=30, shuffle=True)
model = ConvNet()
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8, eta_min=1e-3)
swa_schedule = SWALR(optimizer, swa_lr=0.01, anneal_epochs=1)
for epoch in range(12):
    model.train()
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
    if epoch >= 8:
        averaged.update_parameters(model)
        swa_schedule.step()
    else:
        schedule.step()
update_bn(loader, averaged)
averaged.eval()
with torch.no_grad():
    val = nn.functional.cross_entropy(averaged(x[600:]), y[600:])
print(f"loss {loss.item():.3f}, of the mean on new waves {val.item():.3f}")
