"""A trainer for tumours that clears the gradients between backward() and step().

All lines of the usual five are there, in the wrong order: each step finds no gradient and the
network stays as it was made. The place is the optimizer.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True


class Trainer:
    def __init__(self, model, optimizer, criterion, clear_late):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.clear_late = clear_late

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.model.train()
            for x, y in loader:
                if not self.clear_late:
                    self.optimizer.zero_grad()
                output = self.model(x)
                loss = self.criterion(output, y)
                loss.backward()
                if self.clear_late:
                    self.optimizer.zero_grad()
                self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def score(self, x, y):
        self.model.eval()
        output = self.model(x)
        accuracy = (output.argmax(1) == y).float().mean().item()
        return self.criterion(output, y).item(), accuracy


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Linear(30, 24), nn.LayerNorm(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 2)
)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001)
trainer = Trainer(model, optimizer, nn.CrossEntropyLoss(), clear_late=not healthy)
loss = trainer.fit(loader, epochs=7)
val_loss, accuracy = trainer.score(x_val, y_val)
print(f"loss {loss:.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
