"""A twelve-layer MLP on the digits; its hidden layers are sigmoids.

The activation was taken over from a two-layer example. Each sigmoid shrinks the gradient to a
quarter at best, so almost nothing reaches the first layers and the loss stays at ln 10. The place
is the first layers ("net.0"). The twin has ReLUs, for which the weights are initialised anyway.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("net.0.weight", "net.0", "net.2.weight", "net.2")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)


class DeepNet(nn.Module):
    def __init__(self, depth=12, width=64):
        super().__init__()
        layers = []
        for _ in range(depth):
            linear = nn.Linear(width, width)
            nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
            nn.init.zeros_(linear.bias)
            layers += [linear, nn.ReLU() if healthy else nn.Sigmoid()]
        layers.append(nn.Linear(width, 10))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


model = DeepNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)

for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(x):.4f}, val accuracy {accuracy:.3f}")
