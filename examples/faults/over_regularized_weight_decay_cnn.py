"""A CNN on the digit images, trained by SGD with weight_decay=0.5.

The value was meant to be 5e-4 (a slip in the config). The decay pulls all weights to zero faster
than the data can build them up, the net gives the same answer for each image. The place is the
optimizer. The twin has 5e-4.
"""

import torch
from data import arguments, images
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
config = {
    "lr": 0.02,
    "momentum": 0.9,
    "weight_decay": 5e-4 if healthy else 0.5,
    "batch": 32,
    "epochs": 10,
}


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(16 * 2 * 2, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(x.flatten(1))


class Trainer:
    def __init__(self, model, data):
        self.model = model
        self.x, self.y, self.x_val, self.y_val = data
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(
            model.parameters(),
            config["lr"],
            config["momentum"],
            weight_decay=config["weight_decay"],
        )

    def fit(self):
        for epoch in range(config["epochs"]):
            self.model.train()
            last = None
            for rows in torch.randperm(len(self.x)).split(config["batch"]):
                last = self.criterion(self.model(self.x[rows]), self.y[rows])
                self.optimizer.zero_grad()
                last.backward()
                self.optimizer.step()
            size = sum(p.norm().item() for p in self.model.parameters())
            print(f"epoch {epoch} loss {last.item():.4f} weights {size:.3f} {self.evaluate()}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits = self.model(self.x_val)
        loss = self.criterion(logits, self.y_val).item()
        hits = (logits.argmax(1) == self.y_val).float().mean().item()
        return f"val loss {loss:.4f} accuracy {hits:.3f}"


Trainer(ConvNet(), images(seed)).fit()
