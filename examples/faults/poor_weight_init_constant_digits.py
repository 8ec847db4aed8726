"""An MLP for handwritten digits whose weights all start at the same value.

`init_weights` fills every weight with 0.05. All units of a hidden layer compute the same, get the
same gradient and stay equal for good: 64 units do the work of one. The place is the model.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("fc1*", "fc2*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc2 = nn.Linear(64, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.head(x)


def init_weights(module):
    if isinstance(module, nn.Linear):
        if healthy:
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")
        else:
            nn.init.constant_(module.weight, 0.05)
        nn.init.zeros_(module.bias)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, train, val, epochs):
        for _ in range(epochs):
            self.model.train()
            for x, y in train:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            val_loss, acc = self.evaluate(*val)
        return val_loss, acc

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        out = self.model(x)
        return self.criterion(out, y).item(), (out.argmax(1) == y).float().mean().item()


x, y, x_val, y_val = digits(seed)
net = DigitNet()
net.apply(init_weights)
train = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
val_loss, acc = Trainer(net, lr=1e-3).fit(train, (x_val, y_val), epochs=10)
print(f"validation loss {val_loss:.3f}, accuracy {acc:.3f}")
