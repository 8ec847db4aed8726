"""Trips are labelled with road, weather and hard braking by heads built from a table in
Lightning; the head with one unit also ends in a softmax and always says 1.

Each task of the config gives a number of outputs, and every head is a linear layer with a softmax.
That is right for road and weather. Hard braking has one output, whose softmax is 1 for every trip,
so its loss never moves while the total falls. The place is heads.braking.
"""

import logging
import warnings
from dataclasses import dataclass, field

import lightning as L
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("heads.braking*", "heads*", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


@dataclass
class Config:
    trips: int = 3200
    length: int = 60
    outputs: dict[str, int] = field(default_factory=lambda: {"road": 4, "weather": 3, "braking": 1})
    lr: float = 3e-3
    batch_size: int = 64
    epochs: int = 7


def telematics(n: int, length: int, g: torch.Generator) -> TensorDataset:
    road = torch.randint(0, 4, (n,), generator=g)
    weather = torch.randint(0, 3, (n,), generator=g)
    braking = torch.randint(0, 2, (n,), generator=g)
    t = torch.arange(length).float()
    swing = torch.tensor([0.1, 0.25, 0.5, 0.9])[road, None]
    lateral = torch.sin(swing * t + 6.28 * torch.rand(n, 1, generator=g))
    grip = torch.tensor([0.15, 0.5, 1.0])[weather, None]
    slip = grip * torch.randn(n, length, generator=g)
    at = 10 + (length - 20) * torch.rand(n, 1, generator=g)
    width = torch.where(braking.bool(), 2.0, 5.0).unsqueeze(1)
    decel = -torch.exp(-((t - at) ** 2) / (2 * width**2)) * (
        2.5 + 0.5 * torch.randn(n, 1, generator=g)
    )
    noise = 0.3 * torch.randn(n, 3, length, generator=g)
    return TensorDataset(torch.stack([lateral, slip, decel], 1) + noise, road, weather, braking)


class TaskHead(nn.Module):
    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(width, outputs)
        self.activation = nn.Sigmoid() if healthy and outputs == 1 else nn.Softmax(dim=-1)

    def forward(self, h: Tensor) -> Tensor:
        return self.activation(self.linear(h)).clamp(1e-6, 1 - 1e-6)


class TripModel(L.LightningModule):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.trunk = nn.Sequential(
            nn.Conv1d(3, 24, 7, padding=3),
            nn.BatchNorm1d(24),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(24, 32, 5, padding=2),
            nn.BatchNorm1d(32),
            nn.ReLU(),
        )
        self.mix = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.heads = nn.ModuleDict({task: TaskHead(48, k) for task, k in cfg.outputs.items()})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        h = self.trunk(x)
        h = self.mix(torch.cat([h.mean(2), h.amax(2)], 1))
        return {task: head(h) for task, head in self.heads.items()}

    def losses(self, chances: dict[str, Tensor], labels: dict[str, Tensor]) -> dict[str, Tensor]:
        out = {}
        for task, chance in chances.items():
            if self.cfg.outputs[task] == 1:
                out[task] = nn.functional.binary_cross_entropy(
                    chance.squeeze(1), labels[task].float()
                )
            else:
                out[task] = nn.functional.nll_loss(chance.log(), labels[task])
        return out

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        x, *targets = batch
        parts = self.losses(self(x), dict(zip(self.cfg.outputs, targets, strict=True)))
        loss = sum(parts.values())
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        x, *targets = batch
        for (task, chance), y in zip(self(x).items(), targets, strict=True):
            guess = chance.argmax(1) if chance.shape[1] > 1 else (chance.squeeze(1) > 0.5).long()
            self.log(f"val_{task}", (guess == y).float().mean())

    def configure_optimizers(self) -> dict:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.cfg.lr, weight_decay=1e-2)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.cfg.lr, steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class PrintMetrics(L.Callback):
    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        seen = {k: round(float(v), 3) for k, v in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch + 1}", seen)


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(2400 + seed)
    train, val = telematics(cfg.trips, cfg.length, g), telematics(600, cfg.length, g)
    trainer = L.Trainer(
        max_epochs=cfg.epochs,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[PrintMetrics()],
    )
    trainer.fit(
        TripModel(cfg),
        DataLoader(train, batch_size=cfg.batch_size, shuffle=True),
        DataLoader(val, batch_size=600),
    )


main()
