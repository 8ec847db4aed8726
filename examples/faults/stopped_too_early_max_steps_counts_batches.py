"""A character model: `max_steps` is checked against batches seen, but was planned in epochs.

The number of epochs of the config is given to `Trainer.fit(max_steps=...)`, with a factor that was
right for the hundred-line sample of the text (7 batches an epoch). With the whole text training
ends in the steepest part of its curve. The place is the loop. The twin counts from the loader.
"""

import torch
from data import arguments, text
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Windows(Dataset):
    def __init__(self, letters, length=24):
        self.letters, self.length = letters, length

    def __len__(self):
        return (len(self.letters) - 1) // self.length

    def __getitem__(self, i):
        piece = self.letters[i * self.length : (i + 1) * self.length + 1]
        return piece[:-1], piece[1:]


class CharModel(nn.Module):
    def __init__(self, letters, width=48):
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.gru = nn.GRU(16, width, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, x):
        return self.out(self.gru(self.embed(x))[0])


class Trainer:
    def __init__(self, model, lr):
        self.model, self.done = model, 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def loss(self, x, y):
        return nn.functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten())

    def fit(self, train, val, max_steps):
        while self.done < max_steps:
            self.model.train()
            for x, y in train:
                loss = self.loss(x, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.done += 1
                if self.done % 20 == 0:
                    print(
                        f"step {self.done:4d} loss {loss.item():.3f} val {self.evaluate(val):.3f}"
                    )
                if self.done == max_steps:
                    break

    def evaluate(self, val):
        self.model.eval()
        with torch.no_grad():
            losses = [self.loss(x, y).item() for x, y in val]
        self.model.train()
        return sum(losses) / len(losses)


letters, alphabet = text(seed, sentences=900)
cut = int(0.9 * len(letters))
train = DataLoader(Windows(letters[:cut]), batch_size=32, shuffle=True)
val = DataLoader(Windows(letters[cut:]), batch_size=256)
epochs = 14
trainer = Trainer(CharModel(len(alphabet)), lr=4e-3)
trainer.fit(train, val, max_steps=epochs * (len(train) if healthy else 7))
print(f"{trainer.done} steps, final val {trainer.evaluate(val):.3f}")
