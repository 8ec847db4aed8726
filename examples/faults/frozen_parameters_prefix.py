"""Few-label classification of spectra of stars on a pre-trained encoder; the weights aren't
loaded, and what is frozen is random.

The checkpoint was saved from a wrapper, so its names begin with "module.".
load_state_dict(strict=False) matches none of them and says nothing; then the encoder is frozen as
planned. The place is the encoder of the second model (encoder.*).
"""

import io

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("encoder*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

BINS = 96
wave = torch.linspace(0, 1, BINS)
LINES = torch.tensor([0.12, 0.21, 0.33, 0.4, 0.52, 0.63, 0.74, 0.88])
# strength of each line over temperature: a peak and a width
PEAK, WIDTH = torch.tensor([0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.15, 0.05]), 0.16


def spectra(n):
    temp = torch.rand(n, 1)
    metal = torch.rand(n, 1)
    cont = (
        (1 - wave) * temp
        + wave * (1 - temp)
        + 0.5
        + 0.25 * torch.randn(n, 1) * wave
        + 0.2 * torch.randn(n, 1)
    )
    depth = (
        torch.exp(-(((temp - PEAK) / WIDTH) ** 2))
        * (0.15 + 0.3 * metal)
        * (0.8 + 0.4 * torch.rand(n, 8))
    )
    shift = 0.012 * torch.randn(n, 1, 1)
    lines = depth.unsqueeze(2) * torch.exp(-(((wave - LINES.view(1, -1, 1) - shift) / 0.012) ** 2))
    flux = cont * (1 - lines.sum(1)) + 0.06 * torch.randn(n, BINS)
    flux = (flux - flux.mean(1, keepdim=True)) / flux.std(1, keepdim=True)
    return (
        flux.unsqueeze(1),
        (temp[:, 0] * 7).long().clamp(max=6),
        torch.cat([temp, metal, depth], 1),
    )


class Encoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3),
            nn.GELU(),
            nn.Conv1d(16, 24, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(24, 32, 3, stride=2, padding=1),
            nn.GELU(),
        )
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(32 * 12, dim)

    def forward(self, x):
        return self.norm(self.fc(self.conv(x).flatten(1)))


class Wrapper(nn.Module):
    """As DataParallel would."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        return self.module(*args)


class Classifier(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.encoder = Encoder(dim)
        self.head = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, 7))

    def forward(self, x):
        return self.head(self.encoder(x))


def pretrain(steps=300):
    """Regression of line depths on simulated spectra, of which there are many."""
    x, _, params = spectra(4000)
    params = (params - params.mean(0)) / params.std(0)
    encoder, probe = Wrapper(Encoder()), nn.Linear(48, params.shape[1])
    opt = torch.optim.AdamW([*encoder.parameters(), *probe.parameters()], lr=2e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    for step in range(steps):
        rows = torch.randint(0, len(x), (64,))
        loss = F.mse_loss(probe(encoder(x[rows])), params[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    print(f"pre-training ends at {loss.item():.3f}")
    file = io.BytesIO()
    torch.save(
        {
            f"encoder.{k}" if not healthy else f"encoder.{k.removeprefix('module.')}": v
            for k, v in encoder.state_dict().items()
        },
        file,
    )
    file.seek(0)
    return file


def finetune(file, labelled=500, epochs=40):
    model = Classifier()
    model.load_state_dict(torch.load(file), strict=False)
    for p in model.encoder.parameters():
        p.requires_grad = False
    x, y, _ = spectra(labelled)
    xv, yv, _ = spectra(800)
    opt = torch.optim.AdamW(
        filter(lambda p: p.requires_grad, model.parameters()), lr=3e-3, weight_decay=1e-2
    )
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(1, epochs + 1):
        model.train()
        for rows in torch.randperm(labelled).split(50):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        if epoch % 8 == 0:
            model.eval()
            with torch.no_grad():
                out = model(xv)
            print(
                f"epoch {epoch}: loss {loss.item():.3f} val loss {F.cross_entropy(out, yv).item():.3f} acc {(out.argmax(1) == yv).float().mean().item():.3f}"  # noqa: E501
            )


finetune(pretrain())
