"""A CNN with batch normalisation and dropout that is trained in evaluation mode.

The first accuracy is measured before training, which calls `model.eval()`; nobody calls
`model.train()` after that. The running statistics keep their first values, the dropout is off. The
place is the loop.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class BNNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = nn.functional.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


@torch.no_grad()
def accuracy(model):
    model.eval()
    return (model(x_val).argmax(1) == y_val).float().mean().item()


def train_epoch(model, loader, optimizer):
    if healthy:
        model.train()
    for img, lab in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(img), lab)
        loss.backward()
        optimizer.step()
    return loss.item()


model = BNNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
print(f"before training: accuracy {accuracy(model):.3f}")
for epoch in range(8):
    loss = train_epoch(model, loader, optimizer)
    print(f"epoch {epoch}: loss {loss:.3f}, accuracy {accuracy(model):.3f}")
