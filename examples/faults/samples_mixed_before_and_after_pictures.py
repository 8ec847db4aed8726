"""Two pictures of a place, before and after, go through one encoder as one batch, and view() then
pairs each place's code with its neighbour's.

The codes of torch.cat([before, after]) lie as all befores, then all afters. `view(n, -1)` joins
rows 0 and 1, 2 and 3 …, which are befores of two different places. The head never sees a pair and
guesses. The place is the forward of the model, between encoder and head.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "samples_mixed"
ACCEPT = ("label_misalignment",)
PLACE = ("model", "head", "head.*", "encoder", "encoder.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE = 12


def landscape(n):
    """Smooth random fields as seen from above."""
    coarse = torch.randn(n, 1, 4, 4)
    return nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")


class Places(Dataset):
    """Label 1 where a house (a bright square) was built between the two pictures."""

    def __init__(self, n):
        ground = landscape(n)
        self.label = (torch.rand(n) < 0.5).float()
        old_house = torch.rand(n) < 0.5
        before, after = ground.clone(), ground.clone() + 0.2 * torch.randn(n, 1, 1, 1)
        for i in range(n):
            if old_house[i]:
                self.build(before[i], after[i])
            if self.label[i]:
                self.build(after[i])
        self.before = before + 0.15 * torch.randn_like(before)
        self.after = after + 0.15 * torch.randn_like(after)

    @staticmethod
    def build(*pictures):
        top, left = torch.randint(0, SIDE - 3, (2,)).tolist()
        for picture in pictures:
            picture[:, top : top + 3, left : left + 3] += 2.5

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.before[i], self.after[i], self.label[i]


class ChangeNet(nn.Module):
    def __init__(self, code=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, code),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Linear(2 * code, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, before, after):
        codes = self.encoder(torch.cat([before, after]))
        pairs = torch.cat(codes.chunk(2), dim=1) if healthy else codes.view(len(before), -1)
        return self.head(pairs).squeeze(1)


def main():
    train_loader = DataLoader(Places(1600), batch_size=40, shuffle=True)
    val_loader = DataLoader(Places(400), batch_size=100)
    net, criterion = ChangeNet(), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=6, gamma=0.3)
    for epoch in range(9):
        net.train()
        train_loss = 0.0
        for before, after, built in train_loader:
            loss = criterion(net(before, after), built)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item()
        scheduler.step()
        net.eval()
        hits = 0
        with torch.no_grad():
            for before, after, built in val_loader:
                hits += ((net(before, after) > 0) == (built > 0.5)).sum().item()
        print(f"epoch {epoch}: loss {train_loss / len(train_loader):.3f} val acc {hits / 400:.3f}")


main()
