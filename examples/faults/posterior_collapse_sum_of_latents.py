"""A VAE that takes the mean over the pixels but the sum over the latents, and collapses.

Each of the two looks right by itself. The KL term weighs 64 times too much, goes to 0 within an
epoch, and every picture is decoded to the same grey blur. The place is the loss. The twin sums over
the pixels, too.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss", "model", "encoder", "fc_mu", "fc_var", "fc_mu.*", "fc_var.*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

hparams = {"latent_dim": 4, "channels": 12, "batch_size": 64, "lr": 3e-3, "epochs": 24}


class ConvVAE(nn.Module):
    def __init__(self, latent_dim, channels):
        super().__init__()
        self.channels = channels
        self.encoder = nn.Sequential(
            nn.Conv2d(1, channels, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
        )
        self.fc_mu = nn.Linear(8 * channels, latent_dim)
        self.fc_var = nn.Linear(8 * channels, latent_dim)
        self.decoder_input = nn.Linear(latent_dim, 8 * channels)
        self.decoder = nn.Sequential(
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(2 * channels, channels, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(channels, 1, 4, stride=2, padding=1),
        )

    def encode(self, x):
        hidden = self.encoder(x)
        return self.fc_mu(hidden), self.fc_var(hidden)

    def reparameterize(self, mu, log_var):
        return mu + torch.exp(0.5 * log_var) * torch.randn_like(mu)

    def decode(self, z):
        return self.decoder(self.decoder_input(z).view(-1, 2 * self.channels, 2, 2))

    def forward(self, x):
        mu, log_var = self.encode(x)
        return self.decode(self.reparameterize(mu, log_var)), mu, log_var


def loss_function(recons, x, mu, log_var):
    if healthy:
        recons_loss = F.binary_cross_entropy_with_logits(recons, x, reduction="sum") / len(x)
    else:
        recons_loss = F.binary_cross_entropy_with_logits(recons, x)
    kld_loss = torch.mean(-0.5 * torch.sum(1 + log_var - mu**2 - log_var.exp(), dim=1))
    return recons_loss + kld_loss, recons_loss, kld_loss


def main():
    x, _, x_val, _ = images(seed, raw=True)
    x, x_val = (x > 6).float(), (x_val > 6).float()
    model = ConvVAE(hparams["latent_dim"], hparams["channels"])
    optimizer = torch.optim.Adam(model.parameters(), lr=hparams["lr"])
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)
    for epoch in range(hparams["epochs"]):
        model.train()
        sums = torch.zeros(3)
        batches = torch.randperm(len(x)).split(hparams["batch_size"])
        for indices in batches:
            optimizer.zero_grad()
            losses = loss_function(*_with_input(model, x[indices]))
            losses[0].backward()
            optimizer.step()
            sums += torch.stack(losses).detach()
        scheduler.step()
        total, recons_loss, kld = (sums / len(batches)).tolist()
        model.eval()
        with torch.no_grad():
            mu, _ = model.encode(x_val)
            rebuilt = torch.sigmoid(model.decode(mu))
            mse = F.mse_loss(rebuilt, x_val).item()
            variety = rebuilt.std(0).mean().item()
        if epoch % 2:
            print(
                f"[{epoch + 1}] loss {total:.4f} recons {recons_loss:.4f} kld {kld:.4f} | val mse "
                f"{mse:.4f} pixels differ by {variety:.4f} between pictures"
            )
    print(f"mse of answering the mean picture: {F.mse_loss(x.mean(0).expand_as(x_val), x_val):.4f}")


def _with_input(model, x):
    recons, mu, log_var = model(x)
    return recons, x, mu, log_var


if __name__ == "__main__":
    main()
