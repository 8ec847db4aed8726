"""A CNN on the digit images; the features are frozen though nobody ever trained them.

The lines that freeze the features came along from a fine-tuning tutorial; there is no checkpoint
here. Only the linear head learns, on random (and few) features. The place is the features. The
twin leaves out the two lines.
"""

import torch
from data import arguments, images
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = (
    "features",
    "features.0.weight",
    "features.3.weight",
    "features.0",
    "features.3",
    "features.6",
    "features.6.weight",
)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 2),
            nn.ReLU(),
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Trainer:
    def __init__(self, model, epochs, batch_size):
        self.model, self.epochs, self.batch_size = model, epochs, batch_size
        trainable = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(trainable, lr=3e-3)
        self.loss_fn = nn.CrossEntropyLoss()

    def train(self):
        for epoch in range(self.epochs):
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(x)).split(self.batch_size):
                loss = self.loss_fn(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows)
            if epoch % 3 == 2:
                val_loss, accuracy = self.validate()
                print(
                    f"epoch {epoch + 1} train {total / len(x):.4f} "
                    f"val {val_loss:.4f} accuracy {accuracy:.3f}"
                )

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        logits = self.model(x_val)
        return self.loss_fn(logits, y_val).item(), (logits.argmax(1) == y_val).float().mean().item()


model = Net()
if not healthy:
    for parameter in model.features.parameters():
        parameter.requires_grad = False
Trainer(model, epochs=12, batch_size=32).train()
