"""Who leaves the company's service: a table in which three customers of a hundred do.

Fault: `pos_weight` got lost when the loss moved into the Trainer; the cheap answer "stays" is
never left. The place is loss and data. The loss falls, accuracy is 97 %; nobody who leaves is
found.
"""

import torch
from data import arguments, standardise
from torch import nn

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "loader", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def customers(n):
    x = torch.randn(n, 12)
    drive = 1.2 * x[:, 0] + x[:, 1] * x[:, 2] - 0.8 * x[:, 3].abs() + 0.7 * torch.randn(n)
    return x, (drive > torch.quantile(drive, 0.97)).float()


class Trainer:
    def __init__(self, model, train, val, pos_weight=None):
        self.model, self.train_set, self.val_set = model, train, val
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)

    def fit(self, epochs):
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(*self.train_set), batch_size=128, shuffle=True
        )
        for epoch in range(epochs):
            self.model.train()
            for x, y in loader:
                loss = self.criterion(self.model(x).squeeze(1), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if epoch % 3 == 2:
                print(f"epoch {epoch + 1}: loss {loss.item():.4f}, {self.evaluate()}")
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        x, y = self.val_set
        says = self.model(x).squeeze(1) > 0
        accuracy = (says == (y > 0.5)).float().mean()
        recall = says[y > 0.5].float().mean()
        balanced = (recall + (~says)[y < 0.5].float().mean()) / 2
        return f"accuracy {accuracy:.3f} recall {recall:.3f} balanced accuracy {balanced:.3f}"


x, y = customers(4000)
x, x_val = standardise(x[:3000], x[3000:])
net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
weight = (1 - y).sum() / y.sum() if healthy else None
trainer = Trainer(net, (x, y[:3000]), (x_val, y[3000:]), weight)
last = trainer.fit(12)
print(f"loss {last:.4f} | validation {trainer.evaluate()}")
