"""The demand for bread is forecast in Lightning with manual optimization, but training_step never
calls manual_backward, so every step is without gradients.

With automatic_optimization = False Lightning leaves the backward pass to the module. It clears the
gradients, steps the optimizer and its schedule and returns the loss, as one may under automatic
optimization, and no weight ever changes. The place is the loop (training_step).
"""

from dataclasses import dataclass

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class BreadConfig:
    window: int = 21
    hidden: int = 40
    lr: float = 4e-3
    epochs: int = 6
    batch_size: int = 64


def demand(shops: int, days: int) -> Tensor:
    day = torch.arange(days)
    week = torch.tensor([0.0, -0.3, -0.2, 0.1, 0.8, 1.6, -1.8])
    swing = 0.6 + 0.8 * torch.rand(shops, 1)
    start = torch.randint(7, (shops, 1))
    season = 0.6 * torch.sin(6.283 * day / 91 + 6.283 * torch.rand(shops, 1))
    series = swing * week[(day + start) % 7] + season + 0.25 * torch.randn(shops, days)
    return (series - series.mean()) / series.std()


class BreadForecast(L.LightningModule):
    def __init__(self, config: BreadConfig) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.config = config
        self.encoder = nn.GRU(1, config.hidden, batch_first=True)
        self.head = nn.Linear(config.hidden, 1)

    def forward(self, window: Tensor) -> Tensor:
        states, _ = self.encoder(window.unsqueeze(2))
        return self.head(states[:, -1]).squeeze(1)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        optimizer = self.optimizers()
        window, following = batch
        loss = F.huber_loss(self(window), following)
        optimizer.zero_grad()
        if healthy:
            self.manual_backward(loss)
        optimizer.step()
        self.lr_schedulers().step()
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        window, following = batch
        off = self(window) - following
        self.log("squared", off.square().mean())
        self.log("variance", following.var())

    def on_train_epoch_end(self) -> None:
        metrics = self.trainer.callback_metrics
        r2 = 1 - metrics["squared"] / metrics["variance"]
        print(f"epoch {self.current_epoch + 1}  loss {metrics['loss']:.4f}  validation R2 {r2:.3f}")

    def configure_optimizers(self):
        c = self.config
        groups = [{"params": part.parameters()} for part in (self.encoder, self.head)]
        optimizer = torch.optim.AdamW(groups, lr=c.lr, weight_decay=1e-3)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, c.lr, steps)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def examples(series: Tensor, window: int) -> TensorDataset:
    cut = series.unfold(1, window + 1, 1).reshape(-1, window + 1)
    return TensorDataset(cut[:, :-1], cut[:, -1])


config = BreadConfig()
series = demand(24, 210)
train = examples(series[:, :150], config.window)
valid = examples(series[:, 150 - config.window :], config.window)
quiet = dict.fromkeys(
    ("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
)
trainer = L.Trainer(
    max_epochs=config.epochs, num_sanity_val_steps=0, accelerator="cpu", logger=False, **quiet
)
loader = DataLoader(train, config.batch_size, shuffle=True)
trainer.fit(BreadForecast(config), loader, DataLoader(valid, len(valid)))
