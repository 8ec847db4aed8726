"""A Siamese network that says whether two pictures show the same digit ends in a sigmoid although
the loss is BCEWithLogitsLoss.

The loss takes the sigmoid again, so it sees numbers between 0.50 and 0.73 and cannot say "no": it
stalls around 0.55, and nearly every pair is called "same" when the scores are thresholded.
The place is the output of the model, and the loss.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("out", "out.*", "loss", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class PairDataset(Dataset):
    """Half of the pairs show the same digit."""

    def __init__(self, pictures, digits, pairs):
        generator = torch.Generator().manual_seed(seed)
        self.pictures = pictures
        self.left = torch.randint(len(digits), (pairs,), generator=generator)
        self.same = (torch.rand(pairs, generator=generator) < 0.5).float()
        self.right = torch.empty_like(self.left)
        for i, (row, same) in enumerate(zip(self.left, self.same, strict=True)):
            fitting = ((digits == digits[row]) == bool(same)).nonzero()[:, 0]
            self.right[i] = fitting[torch.randint(len(fitting), (1,), generator=generator)]

    def __len__(self):
        return len(self.same)

    def __getitem__(self, i):
        return self.pictures[self.left[i]], self.pictures[self.right[i]], self.same[i]


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.Flatten(),
            nn.Linear(24 * 16, 32),
        )  # fmt: skip
        out = [nn.Dropout(0.1), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)]
        self.out = nn.Sequential(*out) if healthy else nn.Sequential(*out, nn.Sigmoid())

    def forward(self, left, right):
        distance = (self.cnn(left) - self.cnn(right)).abs()
        return self.out(distance).squeeze(1)


def main():
    x, y, x_val, y_val = images(seed)
    train_loader = DataLoader(PairDataset(x, y, 4500), batch_size=50, shuffle=True)
    val_loader = DataLoader(PairDataset(x_val, y_val, 500), batch_size=250)
    model = Siamese()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(4):
        model.train()
        running = 0.0
        for left, right, same in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(left, right), same)
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        val_loss, right_answers = 0.0, 0
        with torch.no_grad():
            for left, right, same in val_loader:
                scores = model(left, right)
                val_loss += criterion(scores, same).item()
                guess = (torch.sigmoid(scores) > 0.5).float()
                right_answers += (guess == same).sum().item()
        print(
            f"Epoch {epoch + 1}  train {running / len(train_loader):.3f}  "
            f"val {val_loss / len(val_loader):.3f}  val accuracy {right_answers / 500:.3f}"
        )


main()
