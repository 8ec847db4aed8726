"""Follows what pupils know through the exercises they answer; the steps are far too short.

The rate of 2e-5 is from a recipe for fine-tuning a large language model. This GRU starts from
nothing, and after all the epochs it has hardly moved from guessing.
The place is the optimizer. The twin has 5e-3.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "learning_rate_too_low"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

SKILLS, LENGTH = 8, 30


class Answers(Dataset):
    """Each pupil: the skill of every exercise and whether the answer was right."""

    def __init__(self, pupils, seed):
        g = torch.Generator().manual_seed(seed)
        self.skill = torch.randint(0, SKILLS, (pupils, LENGTH), generator=g)
        know = (torch.rand(pupils, SKILLS, generator=g) < 0.45).float()
        right = torch.zeros(pupils, LENGTH)
        row = torch.arange(pupils)
        for t in range(LENGTH):
            s = self.skill[:, t]
            p = know[row, s] * 0.92 + (1 - know[row, s]) * 0.1
            right[:, t] = (torch.rand(pupils, generator=g) < p).float()
            learns = (torch.rand(pupils, generator=g) < 0.1).float()
            know[row, s] = torch.maximum(know[row, s], learns)
        self.right = right

    def __len__(self):
        return len(self.skill)

    def __getitem__(self, i):
        return self.skill[i], self.right[i]


class Tracer(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(2 * SKILLS, 24)
        self.gru = nn.GRU(24, hidden, batch_first=True)
        self.head = nn.Linear(hidden, SKILLS)

    def forward(self, skill, right):
        seen = skill[:, :-1] + SKILLS * right[:, :-1].long()
        states, _ = self.gru(self.embed(seen))
        logits = self.head(states)
        return logits.gather(2, skill[:, 1:].unsqueeze(2)).squeeze(2)


def run_epoch(model, loader, criterion, optimizer=None):
    total, hits, count = 0.0, 0, 0
    model.train(optimizer is not None)
    with torch.set_grad_enabled(optimizer is not None):
        for skill, right in loader:
            logits = model(skill, right)
            target = right[:, 1:]
            loss = criterion(logits, target)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() / len(loader)
            hits += ((logits > 0) == (target > 0.5)).sum().item()
            count += target.numel()
    return total, hits / count


def main():
    healthy, seed = arguments(__doc__)
    train = DataLoader(Answers(640, 2 * seed), batch_size=32, shuffle=True)
    val = DataLoader(Answers(200, 2 * seed + 1), batch_size=100)
    model = Tracer()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3 if healthy else 2e-5)
    for epoch in range(8):
        train_loss, _ = run_epoch(model, train, criterion, optimizer)
        val_loss, accuracy = run_epoch(model, val, criterion)
        print(f"epoch {epoch} {train_loss:.4f} {val_loss:.4f} accuracy {accuracy:.3f}")


main()
