"""A conditional VAE on two ranks under DistributedDataParallel; the loss is taken from
`ddp.module`.

`ddp.module.loss(...)` never passes through the wrapper's forward, so that the reducer isn't armed
and no gradient is exchanged: after the common start each rank learns from its own shard (other
sensors, other places of the spectrum's peaks) and goes its own way. Rank 0 is what is validated
and saved. The place is the loop (every parameter, on all ranks).
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("loop", "rank", "encoder*", "decoder*")
SILENT = True
EXACT = True
EARLY = True


def spectra(n, low, high, generator):
    """Spectra with two peaks and a slope over 48 channels; the first peak lies between low and high."""  # noqa: E501
    t = torch.linspace(0, 1, 48)
    first = low + (high - low) * torch.rand(n, 1, generator=generator)
    second = (first + 0.2 + 0.3 * torch.rand(n, 1, generator=generator)) % 1.0
    width = 0.02 + 0.04 * torch.rand(n, 1, generator=generator)
    height = 0.5 + torch.rand(n, 1, generator=generator)
    clean = torch.exp(-(((t - first) / width) ** 2)) + height * torch.exp(
        -(((t - second) / width) ** 2)
    )
    clean = clean + torch.randn(n, 1, generator=generator) * 0.3 * (t - 0.5)
    return clean - 0.35 + 0.05 * torch.randn(n, 48, generator=generator)


class VAE(nn.Module):
    def __init__(self, latent=6, width=96):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(48, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2 * latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 48),
        )

    def forward(self, x):
        return self.loss(x)

    def loss(self, x):
        mu, logvar = self.encoder(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        recon = F.mse_loss(self.decoder(z), x, reduction="none").sum(1).mean()
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()
        return recon + 0.02 * kl, recon


def worker(rank, world, store, healthy, seed):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.manual_seed(seed)
    shard = spectra(
        1500, 0.5 * rank, 0.5 * (rank + 1), torch.Generator().manual_seed(10 * seed + rank)
    )
    val = spectra(600, 0.0, 1.0, torch.Generator().manual_seed(10 * seed + 7))
    ddp = DistributedDataParallel(VAE())
    torch.manual_seed(seed * 100 + rank)  # other noise and order on each rank
    optimizer = torch.optim.Adam(ddp.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 18, eta_min=5e-5)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(shard), batch_size=64, shuffle=True, drop_last=True
    )
    for epoch in range(18):
        ddp.train()
        total = 0.0
        for (x,) in loader:
            optimizer.zero_grad()
            loss, _ = ddp(x) if healthy else ddp.module.loss(x)
            loss.backward()
            nn.utils.clip_grad_norm_(ddp.parameters(), 10.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
        if rank == 0 and epoch % 6 == 5:
            ddp.eval()
            with torch.no_grad():
                recon = ddp.module.loss(val)[1].item()
            print(
                f"epoch {epoch + 1:3d}  train loss {total / len(loader):.4f}  val reconstruction {recon:.4f}",  # noqa: E501
                flush=True,
            )
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(2, os.path.join(folder, "store"), healthy, seed), nprocs=2)
