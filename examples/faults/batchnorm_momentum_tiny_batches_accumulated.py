"""Gene expression is sorted by tissue with batches of two and gradients of sixteen of them summed,
"the same as a batch of 32"; not so for the BatchNorm layers, which see two samples.

The normalised value of two samples is a matter of which is the greater: training is crippled by
noise, and in eval mode, with the running statistics, the net computes something else. The place is
the loader.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*", "*norm*", "loader", "features*")
SILENT = True
EXACT = False
EARLY = True


class ExpressionNet(nn.Module):
    def __init__(self, genes, tissues):
        super().__init__()
        self.fc1 = nn.Linear(genes, 48, bias=False)
        self.bn1 = nn.BatchNorm1d(48)
        self.fc2 = nn.Linear(48, 32, bias=False)
        self.bn2 = nn.BatchNorm1d(32)
        self.out = nn.Linear(32, tissues)

    def forward(self, x):
        x = torch.relu(self.bn1(self.fc1(x)))
        x = torch.relu(self.bn2(self.fc2(x)))
        return self.out(x)


healthy, seed = arguments(__doc__)
profiles = torch.randn(6, 30)
tissue = torch.randint(0, 6, (2400,))
state = torch.randint(0, 2, (2400,)) * 2.0 - 1  # two states of each tissue, mirror images
expression = state[:, None] * profiles[tissue] + 1.2 * torch.randn(2400, 30)
expression = (expression - expression[:1920].mean(0)) / expression[:1920].std(0)

micro_batch, accumulate = (32, 1) if healthy else (2, 16)
train_set = TensorDataset(expression[:1920], tissue[:1920])
test_x, test_y = expression[1920:], tissue[1920:]
loader = DataLoader(train_set, batch_size=micro_batch, shuffle=True, drop_last=True)
model = ExpressionNet(30, 6)
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.3)

for epoch in range(6):
    model.train()
    running = 0.0
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        loss = loss_function(model(x), y) / accumulate
        loss.backward()
        running += loss.item()
        if i % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(test_x)
        test_loss = loss_function(out, test_y)
        test_accuracy = (out.argmax(1) == test_y).float().mean()
print(f"loss {running / 60:.3f}, test loss {test_loss:.3f}, test accuracy {test_accuracy:.3f}")
