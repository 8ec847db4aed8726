"""An auto-encoder of standardised measurements whose decoder ends with a sigmoid.

Copied from an example for pictures in 0..1: half of the values to be rebuilt are negative and out
of its reach. The place is the sigmoid ("decoder.3"). The twin ends with the linear layer.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("decoder.3", "decoder", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, _, x_val, _ = cancer(seed)


class AutoEncoder(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(30, 32), nn.ELU(), nn.Linear(32, code))
        decoder = [nn.Linear(code, 32), nn.ELU(), nn.Linear(32, 30)]
        if not healthy:
            decoder.append(nn.Sigmoid())
        self.decoder = nn.Sequential(*decoder)

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()

    def train_epoch(self, loader):
        self.model.train()
        total = 0.0
        for batch in loader:
            loss = self.loss_fn(self.model(batch), batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def evaluate(self, data):
        self.model.eval()
        return self.loss_fn(self.model(data), data).item()


trainer = Trainer(AutoEncoder(), lr=2e-3)
loader = DataLoader(x, batch_size=16, shuffle=True)
for epoch in range(30):
    train_loss = trainer.train_epoch(loader)
    if epoch % 3 == 2:
        print(
            f"epoch {epoch + 1}: train {train_loss:.3f}, val {trainer.evaluate(x_val):.3f} (mean "
            f"alone: {x_val.pow(2).mean():.3f})"
        )
