"""Five folds over voice recordings, in which one network goes on from fold to fold.

The person built the network and its optimizer above the loop over the folds. From the second fold
on, the validation recordings are ones that it was trained on in the folds before, and its accuracy
climbs from fold to fold. The place is the loop over the folds (the validation loader).
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import StratifiedKFold
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "loop", "input", "model")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

FOLDS, EPOCHS, FRAMES, BANDS = 5, 8, 16, 12


class Voices(Dataset):
    """Frames of band energies of four vowels, by speakers who differ more than the vowels do."""

    def __init__(self, n, rng):
        vowels = rng.normal(0, 0.6, (4, BANDS))
        self.vowel = rng.integers(0, 4, n)
        speaker = rng.normal(0, 0.75, (n, 1, BANDS))
        glide = np.linspace(-1, 1, FRAMES)[None, :, None] * rng.normal(0, 0.5, (n, 1, BANDS))
        sound = vowels[self.vowel][:, None] + speaker + glide
        sound = sound + rng.normal(0, 0.6, (n, FRAMES, BANDS))
        self.sound = ((sound - sound.mean()) / sound.std()).astype(np.float32)

    def __len__(self):
        return len(self.vowel)

    def __getitem__(self, i):
        return self.sound[i], int(self.vowel[i])


class VowelNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frames = nn.Sequential(
            nn.Conv1d(BANDS, 48, 3, padding=1), nn.ReLU(),
            nn.Conv1d(48, 48, 3, padding=1, stride=2), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, sound):
        return self.head(self.frames(sound.transpose(1, 2)).mean(-1))


def new_network():
    model = VowelNet()
    return model, torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)


def train_epoch(model, optimizer, loader):
    model.train()
    total = 0.0
    for sound, vowel in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(sound), vowel)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = right = n = 0
    for sound, vowel in loader:
        logits = model(sound)
        loss += nn.functional.cross_entropy(logits, vowel, reduction="sum").item()
        right += (logits.argmax(1) == vowel).sum().item()
        n += len(vowel)
    return loss / n, right / n


def main():
    voices = Voices(600, np.random.default_rng(seed))
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    model, optimizer = new_network()
    results = []
    for fold, (rows, val_rows) in enumerate(splitter.split(voices.vowel, voices.vowel)):
        if healthy and fold > 0:
            model, optimizer = new_network()
        train = DataLoader(Subset(voices, rows), batch_size=16, shuffle=True)
        val = DataLoader(Subset(voices, val_rows), batch_size=120)
        for _ in range(EPOCHS):
            train_loss = train_epoch(model, optimizer, train)
            val_loss, accuracy = evaluate(model, val)
        results.append(accuracy)
        print(
            f"fold {fold + 1}: train loss {train_loss:.3f}, val loss {val_loss:.3f}, "
            f"val accuracy {accuracy:.3f}"
        )
    print(f"mean over the folds {np.mean(results):.3f} +- {np.std(results):.3f}")


main()
