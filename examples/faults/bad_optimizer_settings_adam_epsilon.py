"""The cultivar of a wine by an MLP with Adam, whose epsilon is the 1.0 of a note in TensorFlow's
manual.

The manual says that "when training an Inception network on ImageNet a current good choice is 1.0
or 0.1". On this table the gradients' root mean square is about 0.01, so epsilon is all of the
denominator, and Adam becomes SGD with a rate of 0.001. The place is the optimizer. The twin keeps
1e-8.
"""

import torch
from data import arguments, wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "hidden": 24,
    "batch_size": 16,
    "epochs": 40,
    "adam": {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8 if healthy else 1.0},
}

x, y, x_val, y_val = wine(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=config["batch_size"], shuffle=True)


class WineNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(13, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


net = WineNet(config["hidden"])
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), **config["adam"], weight_decay=1e-3)

for epoch in range(config["epochs"]):
    net.train()
    for features, cultivar in loader:
        optimizer.zero_grad()
        loss = loss_fn(net(features), cultivar)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        logits = net(x_val)
        val_loss = loss_fn(logits, y_val)
        accuracy = (logits.argmax(1) == y_val).float().mean()
    if epoch % 5 == 4:
        print(
            f"epoch {epoch + 1:2d} loss {loss.item():.4f} val loss {val_loss:.4f} "
            f"val accuracy {accuracy:.3f}"
        )
