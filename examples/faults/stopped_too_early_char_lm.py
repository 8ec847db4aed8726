"""A character-level LSTM language model is trained for a small part of an epoch and given up in
mid-descent.

`max_steps` was left at the value of the smoke test, so the training ends while the loss still
falls steeply. The place is the loop (its length).
"""

import torch
from data import arguments, text
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class CharLM(nn.Module):
    def __init__(self, characters, width=96):
        super().__init__()
        self.embed = nn.Embedding(characters, 32)
        self.lstm = nn.LSTM(32, width, batch_first=True)
        self.out = nn.Linear(width, characters)

    def forward(self, x):
        states, _ = self.lstm(self.embed(x))
        return self.out(states)


def get_batch(row, size, block, generator):
    starts = torch.randint(0, len(row) - block - 1, (size,), generator=generator)
    window = torch.stack([row[s : s + block + 1] for s in starts])
    return window[:, :-1], window[:, 1:]


class Trainer:
    def __init__(self, model, train_row, val_row, config):
        self.model, self.train_row, self.val_row, self.config = model, train_row, val_row, config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"], weight_decay=0.01)
        self.generator = torch.Generator().manual_seed(seed)

    def loss_of(self, x, y):
        return nn.functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten())

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        g = torch.Generator().manual_seed(99)
        total = sum(self.loss_of(*get_batch(self.val_row, 32, 40, g)).item() for _ in range(6))
        self.model.train()
        return total / 6

    def run(self):
        self.model.train()
        for step in range(1, self.config["max_steps"] + 1):
            loss = self.loss_of(*get_batch(self.train_row, 24, 40, self.generator))
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            if step % self.config["eval_every"] == 0:
                print(f"step {step} loss {loss.item():.3f} val {self.evaluate():.3f}")


row, alphabet = text(seed, 2500)
cut = int(0.9 * len(row))
config = {"lr": 2e-3, "max_steps": 600 if healthy else 100, "eval_every": 20}
Trainer(CharLM(len(alphabet)), row[:cut], row[cut:], config).run()
