"""Factorises ratings in sessions that are cut off and resumed; Adagrad's sums are not restored.

The service stops after a few epochs, and what is restored is the model and the epoch number.
Adagrad's step lengths depend on all gradients so far; after each restart its steps are as long as
the first ones and undo part of the learning. The place is the optimizer, at the resume.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

USERS, ITEMS, TRUE_RANK = 250, 160, 4
SESSIONS, EPOCHS_PER_SESSION, BATCH = 7, 3, 256


def ratings(count):
    taste = torch.randn(USERS, TRUE_RANK)
    quality = torch.randn(ITEMS, TRUE_RANK)
    mood = 0.5 * torch.randn(USERS)
    chosen = torch.randperm(USERS * ITEMS)[:count]
    user, item = chosen // ITEMS, chosen % ITEMS
    score = (taste[user] * quality[item]).sum(1) / TRUE_RANK**0.5 + mood[user]
    return user, item, score + 0.3 * torch.randn(count)


class Factorisation(nn.Module):
    def __init__(self, rank=6):
        super().__init__()
        self.user = nn.Embedding(USERS, rank)
        self.item = nn.Embedding(ITEMS, rank)
        self.user_bias = nn.Embedding(USERS, 1)
        self.item_bias = nn.Embedding(ITEMS, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, user, item):
        product = (self.user(user) * self.item(item)).sum(1)
        return product + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)


def save_checkpoint(epoch, model, optimizer):
    return copy.deepcopy(
        {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    )


def start_session(checkpoint):
    model = Factorisation()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.3)
    epoch = 0
    if checkpoint is not None:
        model.load_state_dict(checkpoint["model"])
        epoch = checkpoint["epoch"]
        if healthy:
            optimizer.load_state_dict(checkpoint["optimizer"])
    return epoch, model, optimizer


def train_epoch(model, optimizer, user, item, score):
    model.train()
    losses = []
    for rows in torch.randperm(len(score)).split(BATCH):
        loss = nn.functional.mse_loss(model(user[rows], item[rows]), score[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    user, item, score = ratings(20000)
    score = (score - score[:16000].mean()) / score[:16000].std()
    train = (user[:16000], item[:16000], score[:16000])
    checkpoint = None
    for session in range(SESSIONS):
        first, model, optimizer = start_session(checkpoint)
        print(f"--- session {session + 1}, from epoch {first}")
        for epoch in range(first, first + EPOCHS_PER_SESSION):
            losses = train_epoch(model, optimizer, *train)
            model.eval()
            with torch.no_grad():
                guess = model(user[16000:], item[16000:])
                rmse = nn.functional.mse_loss(guess, score[16000:]).sqrt().item()
            print(
                f"epoch {epoch:2d}  first batches {sum(losses[:8]) / 8:.3f}  "
                f"last batches {sum(losses[-8:]) / 8:.3f}  held-out RMSE {rmse:.3f}"
            )
        checkpoint = save_checkpoint(first + EPOCHS_PER_SESSION, model, optimizer)


main()
