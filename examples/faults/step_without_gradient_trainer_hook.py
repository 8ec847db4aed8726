"""A Trainer of one's own for wine from its chemistry; a hook moved, and clears the gradients
before the step.

`on_backward_end` was meant to log the gradients and then, "to free the memory", sets them to None;
it used to be called after the step. Since the refactoring it comes before, and Adam has nothing to
step with. The place is the loop. The twin's hook only logs, and the gradients are cleared at the
start of a step.
"""

import torch
from data import arguments, wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Trainer:
    def __init__(self, model, optimizer, loss_fn, max_epochs):
        self.model, self.optimizer, self.loss_fn, self.max_epochs = (
            model,
            optimizer,
            loss_fn,
            max_epochs,
        )
        self.norms = []

    def on_backward_end(self):
        grads = [p.grad.norm() for p in self.model.parameters() if p.grad is not None]
        self.norms.append(torch.stack(grads).norm().item())
        if not healthy:
            self.optimizer.zero_grad(set_to_none=True)

    def training_step(self, batch):
        inputs, target = batch
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(inputs), target)
        loss.backward()
        self.on_backward_end()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        right = total = 0
        for inputs, target in loader:
            right += (self.model(inputs).argmax(1) == target).sum().item()
            total += len(target)
        return right / total

    def fit(self, train_loader, val_loader):
        for epoch in range(self.max_epochs):
            self.model.train()
            losses = [self.training_step(batch) for batch in train_loader]
            accuracy = self.validate(val_loader)
            if epoch % 4 == 3:
                print(
                    f"epoch {epoch + 1:3d} loss {sum(losses) / len(losses):.4f} "
                    f"grad {self.norms[-1]:.3f} val accuracy {accuracy:.3f}"
                )


x, y, x_val, y_val = wine(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=64)
model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3, weight_decay=1e-3)
Trainer(model, optimizer, nn.CrossEntropyLoss(), max_epochs=24).fit(train_loader, val_loader)
