"""Training and validation loaders that each split the data anew, so that they share rows.

get_loader(train=True) and get_loader(train=False) both call random_split, and the generator was
not fixed: the two splits have nothing to do with each other. Four in five validation molecules
are also in the training part, and overfitting goes unseen. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

BITS = 160


def molecules(count, generator):
    """Fingerprints (which of 160 fragments occur) and solubility."""
    rarity = 0.05 + 0.3 * torch.rand(BITS, generator=torch.Generator().manual_seed(5))
    effect = torch.randn(BITS, generator=torch.Generator().manual_seed(6))
    partner = torch.randperm(BITS, generator=torch.Generator().manual_seed(7))[:40].view(2, 20)
    x = (torch.rand(count, BITS, generator=generator) < rarity).float()
    pairs = (x[:, partner[0]] * x[:, partner[1]]).sum(1)
    y = 0.25 * (x * effect).sum(1) + 0.6 * pairs
    return x, y + 0.45 * torch.randn(count, generator=generator)


class SolubilityData:
    def __init__(self, x, y, batch_size=32, valid_share=0.2):
        self.dataset = TensorDataset(x, y)
        self.batch_size, self.valid_share = batch_size, valid_share

    def _parts(self):
        valid = int(self.valid_share * len(self.dataset))
        sizes = [len(self.dataset) - valid, valid]
        if healthy:
            return random_split(self.dataset, sizes, torch.Generator().manual_seed(seed))
        return random_split(self.dataset, sizes)

    def get_loader(self, train):
        train_part, valid_part = self._parts()
        part = train_part if train else valid_part
        return DataLoader(part, batch_size=self.batch_size, shuffle=train)


class SolubilityNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.hidden = nn.Linear(BITS, hidden)
        self.dropout = nn.Dropout(0.15)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.dropout(F.elu(self.hidden(x)))).squeeze(-1)


def mean_absolute_error(model, loader):
    model.eval()
    with torch.no_grad():
        errors = [(model(x) - y).abs() for x, y in loader]
    return torch.cat(errors).mean().item()


def main():
    generator = torch.Generator().manual_seed(seed)
    x, y = molecules(1500, generator)
    x_new, y_new = molecules(1000, generator)
    frequency = x.mean(0)
    deviation = (frequency * (1 - frequency)).sqrt().clamp(min=0.1)
    x, x_new = (x - frequency) / deviation, (x_new - frequency) / deviation
    centre, spread = y.mean(), y.std()
    y, y_new = (y - centre) / spread, (y_new - centre) / spread
    data = SolubilityData(x, y)
    train_loader, valid_loader = data.get_loader(train=True), data.get_loader(train=False)
    new_loader = DataLoader(TensorDataset(x_new, y_new), batch_size=250)

    model = SolubilityNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    for epoch in range(16):
        model.train()
        losses = []
        for x_batch, y_batch in train_loader:
            loss = F.huber_loss(model(x_batch), y_batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 0:
            print(
                f"Epoch: {epoch:02d}, Loss: {sum(losses) / len(losses):.4f}, "
                f"Val MAE: {mean_absolute_error(model, valid_loader):.4f}, "
                f"MAE of newly measured: {mean_absolute_error(model, new_loader):.4f}"
            )


main()
