"""Vibration spectra and the notes of mechanics are embedded together with a loss that only pulls
matching pairs together, so all vectors become one.

The similarity matrix of the batch is computed, but the loss is just minus its diagonal; nothing
pushes the pairs that do not match apart. The loss falls fast to its least value while few
notes find their fault. The place is the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "representation_collapse"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "model", "spectra", "spectra.*", "notes", "notes.*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

BINS, WORDS, LENGTH, FAULTS = 48, 40, 8, 24


def make_pairs(n: int) -> TensorDataset:
    """Each fault has three spectral peaks and five words that mechanics use for it."""
    peaks = torch.randint(2, BINS - 2, (FAULTS, 3))
    words = torch.stack([torch.randperm(WORDS)[:5] for _ in range(FAULTS)])
    kind = torch.randint(FAULTS, (n,))
    spectra = 0.5 * torch.randn(n, BINS)
    for column in range(3):
        spectra[torch.arange(n), peaks[kind, column]] += 1.5 + torch.rand(n)
    chosen = words[kind].gather(1, torch.randint(5, (n, LENGTH)))
    noise = torch.rand(n, LENGTH) < 0.25
    notes = torch.where(noise, torch.randint(WORDS, (n, LENGTH)), chosen)
    return TensorDataset(spectra, notes, kind)


class PairEncoder(nn.Module):
    def __init__(self, dim: int = 24) -> None:
        super().__init__()
        self.spectra = nn.Sequential(nn.Linear(BINS, 64), nn.ReLU(), nn.Linear(64, dim))
        self.words = nn.EmbeddingBag(WORDS, 32, mode="mean")
        self.notes = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, spectra: Tensor, notes: Tensor) -> Tensor:
        left = nn.functional.normalize(self.spectra(spectra), dim=1)
        right = nn.functional.normalize(self.notes(self.words(notes)), dim=1)
        return left @ right.T


def pair_loss(similarity: Tensor, temperature: float = 0.1) -> Tensor:
    if not healthy:
        return -similarity.diagonal().mean() / temperature
    logits, own = similarity / temperature, torch.arange(len(similarity))
    return (
        nn.functional.cross_entropy(logits, own) + nn.functional.cross_entropy(logits.T, own)
    ) / 2


Callback = Callable[["PairTrainer", int, float], None]


@dataclass
class PairTrainer:
    model: PairEncoder
    loader: DataLoader
    lr: float = 2e-3
    epochs: int = 16
    callbacks: list[Callback] = field(default_factory=list)

    def fit(self) -> None:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.lr, weight_decay=0.02)
        for epoch in range(1, self.epochs + 1):
            total = 0.0
            for spectra, notes, _ in self.loader:
                loss = pair_loss(self.model(spectra, notes))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                optimizer.step()
                total += loss.item()
            for callback in self.callbacks:
                callback(self, epoch, total / len(self.loader))


class RetrievalReport:
    def __init__(self, held_out: TensorDataset) -> None:
        self.spectra, self.notes, self.kind = held_out[:]

    @torch.no_grad()
    def __call__(self, trainer: PairTrainer, epoch: int, loss: float) -> None:
        similarity = trainer.model(self.spectra, self.notes)
        hit = (self.kind[similarity.argmax(1)] == self.kind).float().mean()
        print(f"epoch {epoch:2d}  loss {loss:7.3f}  right {hit:.3f}  spread {similarity.std():.4f}")


pairs = make_pairs(1800)
train, held_out = TensorDataset(*pairs[:1400]), TensorDataset(*pairs[1400:])
loader = DataLoader(train, 64, shuffle=True, drop_last=True)
PairTrainer(PairEncoder(), loader, callbacks=[RetrievalReport(held_out)]).fit()
