"""A classifier of maintenance notes runs in Lightning with limit_train_batches=1, meant as all of
them; every epoch is the same first batch.

The config file said 1 for "the whole share". As a float that is the share of the epoch, as an
integer it is a number of batches. The stream starts with the first shard each time, so that the
first 32 notes are all that the model ever sees. The place is the loader.
"""

import logging
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import lightning as L
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")

PARTS = ("pump", "valve", "motor", "belt", "filter", "sensor")
SIGNS = {
    0: ("leaks", "drips", "wet", "seal", "puddle"),
    1: ("hums", "rattles", "loud", "vibrates", "squeals"),
    2: ("hot", "smells", "smoke", "burnt", "warm"),
    3: ("slow", "stuck", "stops", "blocked", "jammed"),
}
FILLER = tuple(f"word{i}" for i in range(80))
WORDS = ("<pad>", *PARTS, *(w for signs in SIGNS.values() for w in signs), *FILLER)
NUMBER = {word: i for i, word in enumerate(WORDS)}


@dataclass
class Config:
    notes: int = 4800
    length: int = 14
    width: int = 24
    batch_size: int = 32
    max_steps: int = 300
    lr: float = 5e-3
    limit_train_batches: float | int = 1.0 if healthy else 1


def write_notes(n: int, length: int, r: random.Random) -> tuple[Tensor, Tensor]:
    rows, labels = [], []
    for _ in range(n):
        label = r.randrange(len(SIGNS))
        said = [r.choice(FILLER) for _ in range(r.randint(4, length - 4))]
        for word in (r.choice(PARTS), *r.choices(SIGNS[label], k=r.randint(1, 2))):
            said.insert(r.randrange(len(said) + 1), word)
        if r.random() < 0.15:
            said.append(r.choice(SIGNS[r.randrange(len(SIGNS))]))
        row = [NUMBER[w] for w in said[:length]]
        rows.append(row + [0] * (length - len(row)))
        labels.append(label)
    return torch.tensor(rows), torch.tensor(labels)


class ShardStream(IterableDataset):
    def __init__(self, x: Tensor, y: Tensor, shards: int = 12):
        self.shards = list(zip(x.chunk(shards), y.chunk(shards), strict=True))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for x, y in self.shards:
            yield from zip(x, y, strict=True)


class NoteClassifier(L.LightningModule):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.words = nn.Embedding(len(WORDS), cfg.width, padding_idx=0)
        self.score = nn.Linear(cfg.width, 1)
        self.head = nn.Sequential(nn.Linear(cfg.width, 32), nn.ReLU(), nn.Linear(32, len(SIGNS)))

    def forward(self, x: Tensor) -> Tensor:
        h = self.words(x)
        weight = self.score(h).masked_fill((x == 0).unsqueeze(2), -1e4).softmax(1)
        return self.head((weight * h).sum(1))

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        if (self.global_step + 1) % 50 == 0:
            print(f"step {self.global_step + 1}  train loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        logits = self(batch[0])
        self.log("val_loss", nn.functional.cross_entropy(logits, batch[1]))
        self.log("val_accuracy", (logits.argmax(1) == batch[1]).float().mean())

    def on_validation_epoch_end(self) -> None:
        print("  ", {k: round(float(v), 4) for k, v in self.trainer.callback_metrics.items()})

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.cfg.lr, weight_decay=1e-2)


def main() -> None:
    cfg = Config()
    r = random.Random(2000 + seed)
    stream = ShardStream(*write_notes(cfg.notes, cfg.length, r))
    val = TensorDataset(*write_notes(600, cfg.length, r))
    trainer = L.Trainer(
        max_steps=cfg.max_steps,
        max_epochs=-1,
        limit_train_batches=cfg.limit_train_batches,
        check_val_every_n_epoch=None,
        val_check_interval=50,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(
        NoteClassifier(cfg),
        DataLoader(stream, batch_size=cfg.batch_size),
        DataLoader(val, batch_size=600),
    )


main()
