"""Will a library book come back late? The single output unit ends in a softmax.

A softmax over one value is one, whatever the value is. The model was written for two classes and
then got a single output for the binary loss; the last line of `forward` stayed. Every loan gets
the probability 1, no gradient arrives anywhere, and the loss stays where it was. The place is the
output of the model. The twin has a sigmoid there.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ("redundant_softmax",)
PLACE = ("output*", "fc3", "model", "activation")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def loans(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.uniform(8, 80, n)
    past_late = rng.poisson(0.8, n)
    pages = rng.lognormal(5.6, 0.5, n)
    borrowed = rng.integers(1, 12, n)
    reserved = rng.uniform(size=n) < 0.2
    reminder = rng.uniform(size=n) < 0.6
    z = -1.0 + 1.2 * past_late + 1.0 * np.log(pages / 270) + 0.25 * (borrowed - 5)
    z += 1.5 * np.exp(-(((age - 20) / 8) ** 2)) - 1.4 * reminder - 0.8 * reserved
    late = rng.uniform(size=n) < 1 / (1 + np.exp(-z))
    x = np.stack(
        [
            (age - 44) / 20,
            np.minimum(past_late, 4) - 0.8,
            np.log(pages / 270) / 0.5,
            (borrowed - 6) / 3.2,
            reserved - 0.2,
            reminder - 0.6,
        ],
        axis=1,
    )
    return torch.tensor(x, dtype=torch.float), torch.tensor(late, dtype=torch.float).view(-1, 1)


class LateReturn(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, 1)
        self.relu = nn.ReLU()
        self.activation = nn.Sigmoid() if healthy else nn.Softmax(dim=1)

    def forward(self, x):
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        x = self.fc3(x)
        return self.activation(x)


X_train, y_train = loans(2500, 2 * seed)
X_test, y_test = loans(600, 2 * seed + 1)

model = LateReturn()
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)

num_epochs, batch_size = 10, 50
for epoch in range(num_epochs):
    permutation = torch.randperm(X_train.size(0))
    running_loss = 0.0
    for i in range(0, X_train.size(0), batch_size):
        indices = permutation[i : i + batch_size]
        batch_x, batch_y = X_train[indices], y_train[indices]

        outputs = model(batch_x)
        loss = criterion(outputs, batch_y)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running_loss += loss.item()

    with torch.no_grad():
        predicted = model(X_test)
        test_loss = criterion(predicted, y_test).item()
        accuracy = ((predicted > 0.5).float() == y_test).float().mean().item()
    print(
        f"Epoch [{epoch + 1}/{num_epochs}], "
        f"Loss: {running_loss * batch_size / len(X_train):.4f}, "
        f"Test loss: {test_loss:.4f}, Accuracy: {100 * accuracy:.2f}%"
    )
