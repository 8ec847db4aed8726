"""Finding corked bottles by thirteen measurements; the hidden units start switched off.

For a rare class one gives the last layer a bias that makes the first predictions small. Here the
loop that does it runs over every linear layer of the model, so that the hidden units begin at -4.6
and no bottle ever lifts one of them over zero: no gradient passes and only the last bias learns.
The place is the first hidden layer. The twin sets the last layer's bias alone.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("hidden1", "hidden2", "net")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

PRIOR = 0.01
BATCH_SIZE = 50
EPOCHS = 15


class CorkNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(13, 48)
        self.hidden2 = nn.Linear(48, 24)
        self.output = nn.Linear(24, 1)
        self.init_weights()

    def init_weights(self):
        bias = -math.log((1 - PRIOR) / PRIOR)
        if healthy:
            nn.init.constant_(self.output.bias, bias)
            return
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.constant_(module.bias, bias)

    def forward(self, x):
        x = F.relu(self.hidden1(x))
        x = F.relu(self.hidden2(x))
        return self.output(x).squeeze(-1)


# bottles: a taint shows in the product of two compounds and lowers the fruit notes
direction = torch.randn(13) / 13**0.5
bottles = torch.randn(4000, 13)
score = 3 * bottles @ direction + 1.5 * bottles[:, 0] * bottles[:, 1] + 0.3 * torch.randn(4000)
corked = (score > score.quantile(0.92)).float()
train_x, test_x = bottles[:3000], bottles[3000:]
train_y, test_y = corked[:3000], corked[3000:]

model = CorkNet()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

for epoch in range(EPOCHS):
    model.train()
    permutation = torch.randperm(len(train_x))
    epoch_loss = 0
    for i in range(0, len(train_x), BATCH_SIZE):
        indices = permutation[i : i + BATCH_SIZE]
        optimizer.zero_grad()
        outputs = model(train_x[indices])
        loss = F.binary_cross_entropy_with_logits(outputs, train_y[indices])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(indices)

    model.eval()
    with torch.no_grad():
        outputs = model(test_x)
        test_loss = F.binary_cross_entropy_with_logits(outputs, test_y).item()
        found = ((outputs > 0) & (test_y == 1)).sum() / test_y.sum()
    print(
        "Epoch %2d | train loss %.4f | test loss %.4f | corked found %.1f%%"  # noqa: UP031
        % (epoch + 1, epoch_loss / len(train_x), test_loss, 100 * found)
    )
