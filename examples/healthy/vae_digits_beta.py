"""A VAE of handwritten digits with a KL weight that is warmed up, in Lightning; sound.

It looks odd: the total loss rises for a while as the KL weight grows, the decoder ends in a
sigmoid and the input is also the target. The pixels lie in [0, 1] and the KL ends far above 0.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric

ODD = "the loss rises for a while; the inputs are the targets"

_, seed = arguments(__doc__)


class DigitsDM(L.LightningDataModule):
    def setup(self, stage=None):
        x, _, x_val, _ = digits(seed, raw=True)
        self.train, self.val = TensorDataset(x / 16), TensorDataset(x_val / 16)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=256)


class VAE(L.LightningModule):
    def __init__(self, latent=6, width=96, warmup_steps=200, kl_weight=0.3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.mu, self.log_var = nn.Linear(width, latent), nn.Linear(width, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 64),
            nn.Sigmoid(),
        )
        self.val_kl = MeanMetric()

    def _parts(self, x):
        h = self.encoder(x)
        mu, log_var = self.mu(h), self.log_var(h)
        z = mu + torch.randn_like(mu) * (0.5 * log_var).exp() if self.training else mu
        recon = F.binary_cross_entropy(self.decoder(z), x, reduction="none").sum(1).mean()
        kl = -0.5 * (1 + log_var - mu.square() - log_var.exp()).sum(1).mean()
        return recon, kl

    def training_step(self, batch, batch_idx):
        recon, kl = self._parts(batch[0])
        beta = self.hparams.kl_weight * min(1.0, self.global_step / self.hparams.warmup_steps)
        loss = recon + beta * kl
        self.log_dict({"loss": loss, "recon": recon, "kl": kl, "beta": beta})
        return loss

    def validation_step(self, batch, batch_idx):
        recon, kl = self._parts(batch[0])
        self.val_kl(kl)
        self.log_dict({"val_recon": recon, "val_loss": recon + self.hparams.kl_weight * kl})
        self.log("val_kl", self.val_kl)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


trainer = L.Trainer(
    max_epochs=30,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    check_val_every_n_epoch=3,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(VAE(), datamodule=DigitsDM())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
