"""A next-item recommender adds the mean of the whole session, later items too, to every step.

The taste is the mean over all the session's items instead of those so far: at every step but the
last it holds the very item that is to be predicted. In use, where the future is not there, the
recommendations are worse than the loss promises. The place is the model: the forward, taste.
"""

import logging
import warnings
from dataclasses import dataclass

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("model", "taste*", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


@dataclass(frozen=True)
class Config:
    items: int = 80
    dim: int = 32
    lr: float = 5e-3


def sessions(count: int, cfg: Config, g: torch.Generator) -> torch.Tensor:
    """Users stay in two favourite genres; half of the time they go to the item's usual sequel."""
    per_genre = cfg.items // 8
    genres = torch.rand(count, 8, generator=g).topk(2, dim=1).indices
    current = genres[:, 0] * per_genre + torch.randint(per_genre, (count,), generator=g)
    rows = [current]
    for _ in range(10):
        genre = genres.gather(1, torch.randint(2, (count, 1), generator=g)).squeeze(1)
        free = genre * per_genre + torch.randint(per_genre, (count,), generator=g)
        sequel = (current * 7 + 3) % cfg.items
        current = torch.where(torch.rand(count, generator=g) < 0.5, sequel, free)
        rows.append(current)
    return torch.stack(rows, 1)


class NextItem(L.LightningModule):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.cfg = cfg
        self.items = nn.Embedding(cfg.items, cfg.dim)
        self.encoder = nn.GRU(cfg.dim, cfg.dim, batch_first=True)
        self.taste = nn.Linear(cfg.dim, cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.items)

    def forward(self, session: torch.Tensor, so_far_only: bool) -> torch.Tensor:
        """Logits of the next item at each step but the last."""
        vectors = self.items(session)
        hidden, _ = self.encoder(vectors[:, :-1])
        average = vectors.mean(1, keepdim=True)
        if so_far_only:
            average = vectors[:, :-1].cumsum(1) / torch.arange(1, session.size(1)).view(1, -1, 1)
        return self.head(hidden + torch.relu(self.taste(average)))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        (session,) = batch
        logits = self(session, so_far_only=healthy)
        return F.cross_entropy(logits.flatten(0, 1), session[:, 1:].flatten())

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        (session,) = batch
        for name, so_far_only in {"offline": healthy, "in use": True}.items():
            top = self(session, so_far_only)[:, -1].topk(5).indices
            self.log(name, (top == session[:, -1:]).any(1).float().mean())

    def on_validation_epoch_end(self) -> None:
        shown = {k: round(v.item(), 3) for k, v in self.trainer.callback_metrics.items()}
        print(f"epoch {self.current_epoch}: hit rate among five {shown}")

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=self.cfg.lr)


def main() -> None:
    cfg, g = Config(), torch.Generator().manual_seed(seed)
    train, val = sessions(2000, cfg, g), sessions(500, cfg, g)
    trainer = L.Trainer(
        max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )  # fmt: skip
    train, val = DataLoader(TensorDataset(train), 64, True), DataLoader(TensorDataset(val), 500)
    trainer.fit(NextItem(cfg), train, val)


main()
