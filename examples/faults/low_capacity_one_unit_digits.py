"""The digits through an MLP whose second hidden layer has a single unit.

The width was set to 1 while somebody tried out the shapes, and stayed. Ten classes have to be
told apart by one number: the loss stops far above zero, on the training data as well. The place
is the narrow layer ("fc2"). The twin has 48 units there.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

KIND = "low_capacity"
ACCEPT = ("dead_relu",)
PLACE = ("fc2", "fc2.weight", "fc3", "fc3.weight")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x_train, y_train, x_test, y_test = digits(seed)
BATCH_SIZE, EPOCHS = 32, 25
BOTTLENECK = 48 if healthy else 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.fc2 = nn.Linear(48, BOTTLENECK)
        self.fc3 = nn.Linear(BOTTLENECK, 10)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x)


def train(net):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    for epoch in range(EPOCHS):
        net.train()
        running = 0.0
        perm = torch.randperm(len(x_train))
        for i in range(0, len(perm), BATCH_SIZE):
            idx = perm[i : i + BATCH_SIZE]
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1}: train loss {running / len(perm):.4f}", end=" ")
            test(net)


@torch.no_grad()
def test(net):
    net.eval()
    logits = net(x_test)
    correct = (logits.argmax(1) == y_test).float().mean().item()
    print(f"test loss {F.cross_entropy(logits, y_test).item():.4f} accuracy {correct:.3f}")


train(Net())
