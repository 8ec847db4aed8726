"""A GAN with manual optimisation, after Lightning's own GAN tutorial, on a ring of eight blobs;
sound.

It looks odd: two optimizers, betas of 0.5, toggled parameters, a detached fake batch, losses that
settle near ln 2 instead of falling. That is how a balanced GAN behaves; the samples cover the
ring.
"""

import math

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "two optimizers, detached fakes, losses that settle instead of falling"

_, seed = arguments(__doc__)


def ring(n):
    angle = torch.randint(0, 8, (n,)) * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.4 + 0.1 * torch.randn(n, 2)


def mlp(inputs, outputs, width=96):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


class GAN(L.LightningModule):
    def __init__(self, latent_dim: int = 8, lr: float = 1e-3, b1: float = 0.5, b2: float = 0.999):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = mlp(latent_dim, 2)
        self.discriminator = mlp(2, 1)

    def forward(self, z):
        return self.generator(z)

    def adversarial_loss(self, y_hat, y):
        return F.binary_cross_entropy_with_logits(y_hat, y)

    def training_step(self, batch):
        (real,) = batch
        optimizer_g, optimizer_d = self.optimizers()
        z = torch.randn(len(real), self.hparams.latent_dim).type_as(real)
        ones, zeros = (
            torch.ones(len(real), 1).type_as(real),
            torch.zeros(len(real), 1).type_as(real),
        )

        self.toggle_optimizer(optimizer_d)
        real_loss = self.adversarial_loss(self.discriminator(real), 0.9 * ones)
        fake_loss = self.adversarial_loss(self.discriminator(self(z).detach()), zeros)
        d_loss = (real_loss + fake_loss) / 2
        self.log("d_loss", d_loss, prog_bar=True)
        self.manual_backward(d_loss)
        optimizer_d.step()
        optimizer_d.zero_grad()
        self.untoggle_optimizer(optimizer_d)

        self.toggle_optimizer(optimizer_g)
        g_loss = self.adversarial_loss(self.discriminator(self(z)), ones)
        self.log("g_loss", g_loss, prog_bar=True)
        self.manual_backward(g_loss)
        optimizer_g.step()
        optimizer_g.zero_grad()
        self.untoggle_optimizer(optimizer_g)

    def configure_optimizers(self):
        lr, betas = self.hparams.lr, (self.hparams.b1, self.hparams.b2)
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=betas)
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=betas)
        return [opt_g, opt_d], []

    def on_train_epoch_end(self):
        if (self.current_epoch + 1) % 5:
            return
        with torch.no_grad():
            x = self(torch.randn(1000, self.hparams.latent_dim))
        angle = torch.arange(8) * (2 * math.pi / 8)
        centres = 1.4 * torch.stack([angle.cos(), angle.sin()], 1)
        near, which = torch.cdist(x, centres).min(1)
        modes = (torch.bincount(which[near < 0.4], minlength=8) > 20).sum()
        print(
            f"epoch {self.current_epoch}: "
            f"{(near < 0.4).float().mean():.3f} of the samples near a blob, {modes} blobs"
        )


loader = DataLoader(TensorDataset(ring(6400)), batch_size=128, shuffle=True, drop_last=True)
trainer = L.Trainer(
    max_epochs=26,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(GAN(), loader)
