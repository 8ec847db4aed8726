"""A small CNN on digits, ported from TensorFlow 1, with keep_prob = 0.9 handed to nn.Dropout.

In TensorFlow 1 the argument is the share that is kept, in PyTorch the share that is dropped: nine
of ten activations are zeroed, twice. The net learns, but far less than it could. The place is the
two dropout layers. The twin passes 1 - keep_prob.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("drop1", "drop2")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

FLAGS = {"batch_size": 50, "learning_rate": 1e-3, "keep_prob": 0.9, "epochs": 15}


class ConvNet(nn.Module):
    def __init__(self, keep_prob):
        super().__init__()
        rate = 1 - keep_prob if healthy else keep_prob
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.drop1 = nn.Dropout(rate)
        self.fc1 = nn.Linear(32 * 4, 64)
        self.drop2 = nn.Dropout(rate)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.drop1(x.flatten(1))
        x = self.drop2(F.relu(self.fc1(x)))
        return self.fc2(x)


def accuracy(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for image, label in loader:
            hits += (model(image).argmax(1) == label).sum().item()
            total += len(label)
    return hits / total


x, y, x_val, y_val = images(seed)
train = DataLoader(TensorDataset(x, y), FLAGS["batch_size"], shuffle=True, drop_last=True)
val = DataLoader(TensorDataset(x_val, y_val), 200)

model = ConvNet(FLAGS["keep_prob"])
optimizer = torch.optim.Adam(model.parameters(), lr=FLAGS["learning_rate"])
for epoch in range(FLAGS["epochs"]):
    model.train()
    losses = []
    for image, label in train:
        loss = F.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(
        f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, "
        f"val accuracy {accuracy(model, val):.3f}"
    )
