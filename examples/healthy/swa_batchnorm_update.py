"""Stochastic weight averaging with a high rate at the end and new batch-norm statistics."""

import torch
from data import arguments, images
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the rate goes up again late and the loss stops falling; forward passes in train mode "
    "without backward"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(),
    nn.Conv2d(12, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Flatten(), nn.Linear(256, 10),
)  # fmt: skip
averaged = AveragedModel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
constant = SWALR(optimizer, swa_lr=0.03, anneal_epochs=2)
for epoch in range(14):
    net.train()
    for pixels, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(pixels), label, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
    if epoch < 8:
        cosine.step()
    else:
        averaged.update_parameters(net)
        constant.step()
update_bn(loader, averaged)
averaged.eval()
with torch.no_grad():
    accuracy = (averaged(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy of the average {accuracy:.3f}")
