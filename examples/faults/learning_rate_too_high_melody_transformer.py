"""A small causal transformer continues melodies; Adam runs with learning rate 0.1.

The rate of an SGD recipe was kept when the optimizer became Adam. The loss jumps up and then
stays near what the frequencies of the notes give. The place is the optimizer (lr).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

NOTES, LENGTH = 30, 20
SCALE = np.array([0, 2, 4, 5, 7, 9, 11])


def melodies(rng, n):
    """Walks on a major scale whose key is the melody's own; a motif of four steps comes again and again."""  # noqa: E501
    key = rng.integers(0, 6, n)
    motif = rng.integers(-2, 3, (n, 4))
    degree = rng.integers(3, 10, n)
    tune = np.zeros((n, LENGTH), dtype=np.int64)
    for t in range(LENGTH):
        octave, step = np.divmod(degree, 7)
        tune[:, t] = np.clip(key + 12 * octave + SCALE[step], 0, NOTES - 1)
        move = np.where(rng.random(n) < 0.85, motif[:, t % 4], rng.integers(-2, 3, n))
        degree = np.clip(degree + move, 0, 13)
    return torch.from_numpy(tune)


class MelodyTransformer(nn.Module):
    def __init__(self, width=48, heads=4, layers=2):
        super().__init__()
        self.notes = nn.Embedding(NOTES, width)
        self.positions = nn.Embedding(LENGTH, width)
        block = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, NOTES)

    def forward(self, tune):
        length = tune.shape[1]
        hidden = self.notes(tune) + self.positions(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.norm(self.blocks(hidden, mask=mask, is_causal=True)))


def lm_loss(model, tune):
    return nn.functional.cross_entropy(model(tune[:, :-1]).transpose(1, 2), tune[:, 1:])


class Trainer:
    def __init__(self, model, train_tunes, val_tunes, lr):
        self.model, self.val_tunes = model, val_tunes
        self.loader = DataLoader(TensorDataset(train_tunes), 50, shuffle=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for (tune,) in self.loader:
                self.optimizer.zero_grad()
                loss = lm_loss(self.model, tune)
                loss.backward()
                self.optimizer.step()
                total += loss.item() / len(self.loader)
            print(f"epoch {epoch} loss {total:.3f} val loss {self.evaluate():.3f}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        return lm_loss(self.model, self.val_tunes).item()


rng = np.random.default_rng(seed)
tunes = melodies(rng, 3300)
trainer = Trainer(MelodyTransformer(), tunes[:3000], tunes[3000:], lr=2e-3 if healthy else 0.1)
trainer.fit(6)
