"""A bot learns where to step on a game field that is mirrored at random, while the step is not.

As the recorded games are few, the dataset's __getitem__ adds random left-right and up-down flips,
as one does for photographs. A mirrored field asks for the mirrored step, so nearly half of the
labels in every epoch are wrong. The place is the input (the training loader). The twin mirrors the
step, too.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("label_noise", "label_misalignment", "train_val_mismatch")
PLACE = ("input", "labels", "loader")
SILENT = True
EXACT = False
EARLY = False

SIZE = 9
NORTH, SOUTH, WEST, EAST, STAY = range(5)
LEFT_RIGHT = {NORTH: NORTH, SOUTH: SOUTH, WEST: EAST, EAST: WEST, STAY: STAY}
UP_DOWN = {NORTH: SOUTH, SOUTH: NORTH, WEST: WEST, EAST: EAST, STAY: STAY}


def record_games(n, rng):
    """Fields with three planes (bot, treasure, trees) and the step that an expert took."""
    fields = torch.zeros(n, 3, SIZE, SIZE)
    steps = torch.zeros(n, dtype=torch.long)
    for i in range(n):
        bot = [rng.randrange(SIZE), rng.randrange(SIZE)]
        goal = list(bot) if rng.random() < 0.12 else [rng.randrange(SIZE), rng.randrange(SIZE)]
        down, right = goal[0] - bot[0], goal[1] - bot[1]
        if down == right == 0:
            steps[i] = STAY
        elif abs(down) > abs(right):
            steps[i] = SOUTH if down > 0 else NORTH
        else:
            steps[i] = EAST if right > 0 else WEST
        fields[i, 0, bot[0], bot[1]] = 1
        fields[i, 1, goal[0], goal[1]] = 1
        for _ in range(8):
            fields[i, 2, rng.randrange(SIZE), rng.randrange(SIZE)] = 1
    return fields, steps


class GameDataset(Dataset):
    def __init__(self, fields, steps, augment, adapt_step):
        self.fields, self.steps = fields, steps
        self.augment, self.adapt_step = augment, adapt_step

    def __len__(self):
        return len(self.fields)

    def __getitem__(self, index):
        field, step = self.fields[index], self.steps[index].item()
        if self.augment:
            for dim, table in ((2, LEFT_RIGHT), (1, UP_DOWN)):
                if random.random() < 0.5:
                    field = field.flip(dim)
                    step = table[step] if self.adapt_step else step
        return field, step


class BotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.hidden = nn.Linear(16 * SIZE * SIZE, 96)
        self.head = nn.Linear(96, 5)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.hidden(x.flatten(1)))
        return self.head(x)


def score(model, loader):
    model.eval()
    loss, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for field, step in loader:
            logits = model(field)
            loss += F.cross_entropy(logits, step, reduction="sum").item()
            right += (logits.argmax(1) == step).sum().item()
            seen += len(step)
    return loss / seen, right / seen


def main():
    healthy, seed = arguments(__doc__)
    rng = random.Random(500 + seed)
    fields, steps = record_games(2400, rng)
    train_set = GameDataset(fields[:1900], steps[:1900], augment=True, adapt_step=healthy)
    val_set = GameDataset(fields[1900:], steps[1900:], augment=False, adapt_step=False)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=250)

    model = BotNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
    for epoch in range(1, 13):
        model.train()
        total = 0.0
        for field, step in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(field), step)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(step)
        val_loss, val_acc = score(model, val_loader)
        print(
            f"epoch {epoch:2d}  train loss {total / len(train_set):.3f}  "
            f"val loss {val_loss:.3f}  val acc {val_acc:.3f}"
        )


if __name__ == "__main__":
    main()
