"""Guesses the next letter of simple sentences; the network reads the text from both ends.

`bidirectional=True` had helped in the author's tagging project and was kept. For guessing the
next letter it lets the backward half see the very letter that is asked for. The loss falls to
almost nothing, and what the model writes by itself is rubbish.
The place is the recurrent layer. The twin reads forwards only.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("gru", "model.gru", "input*")
SILENT = True
EXACT = False
EARLY = True


class Writer(nn.Module):
    def __init__(self, letters, both_ways, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(letters, 24)
        self.gru = nn.GRU(24, hidden, batch_first=True, bidirectional=both_ways)
        self.out = nn.Linear(2 * hidden if both_ways else hidden, letters)

    def forward(self, x):
        return self.out(self.gru(self.embed(x))[0])


class Trainer:
    def __init__(self, model, data, seed, window=32, batch=16):
        self.model, self.window, self.batch = model, window, batch
        cut = int(0.9 * len(data))
        self.train_data, self.val_data = data[:cut], data[cut:]
        self.optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
        self.criterion = nn.CrossEntropyLoss()
        self.g = torch.Generator().manual_seed(seed)

    def windows(self, data):
        starts = torch.randint(0, len(data) - self.window - 1, (self.batch,), generator=self.g)
        rows = torch.stack([data[s : s + self.window + 1] for s in starts])
        return rows[:, :-1], rows[:, 1:]

    def loss(self, data):
        x, y = self.windows(data)
        return self.criterion(self.model(x).transpose(1, 2), y)

    def fit(self, steps):
        for step in range(1, steps + 1):
            loss = self.loss(self.train_data)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            if step % 40 == 0:
                with torch.no_grad():
                    val = sum(self.loss(self.val_data).item() for _ in range(3)) / 3
                print(f"step {step} loss {loss.item():.3f} val {val:.3f}")

    @torch.no_grad()
    def write(self, n=160):
        written = self.val_data[: self.window]
        for _ in range(n):
            logits = self.model(written[-self.window :].unsqueeze(0))[0, -1]
            letter = torch.multinomial(torch.softmax(logits, 0), 1)
            written = torch.cat([written, letter])
        return written[self.window :]


healthy, seed = arguments(__doc__)
numbers, alphabet = text(seed)
trainer = Trainer(Writer(len(alphabet), both_ways=not healthy), numbers, seed)
trainer.fit(200)
known = set("".join(alphabet[i] for i in numbers).replace(".", " ").split())
sample = "".join(alphabet[i] for i in trainer.write())
words = sample.replace(".", " ").split()[1:-1]
share = sum(word in known for word in words) / max(1, len(words))
print("sample:", sample[:70])
print(f"known words in what it writes: {share:.2f}")
