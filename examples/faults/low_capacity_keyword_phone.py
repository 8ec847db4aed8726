"""A keyword spotter (depthwise convolutions, 16 words) is trained with a width multiplier so small
that two channels are left.

The width multiplier of the phone build (written for base widths of 512) is used with base widths
of 32, so every stage has int(32 * 0.0625) = 2 channels. The training loss stays far above what
the data allow, and the validation loss is just as high. The place is the model's width: the stem
and all blocks.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("stem*", "blocks*", "model", "head*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n_words: int = 16
    n_mels: int = 24
    frames: int = 40
    base_width: int = 32
    width_mult: float = 1.0 if healthy else 0.0625
    depth: int = 3
    batch_size: int = 64
    epochs: int = 10
    lr: float = 4e-3
    weight_decay: float = 1e-3


def synth_corpus(cfg: Config, n: int, g: torch.Generator, lexicon, formants):
    """Every word is four phones; a phone is two formants on the mel axis; speakers differ in pitch and tempo."""  # noqa: E501
    words = torch.randint(0, cfg.n_words, (n,), generator=g)
    mel = torch.arange(cfg.n_mels).float()
    feats = torch.zeros(n, cfg.frames, cfg.n_mels)
    for i, w in enumerate(words.tolist()):
        shift = 0.6 * torch.randn(1, generator=g).item()
        t = int(torch.randint(0, 6, (1,), generator=g))
        for phone in lexicon[w].tolist():
            dur = int(torch.randint(6, 10, (1,), generator=g))
            f1, f2 = formants[phone].tolist()
            spec = torch.exp(-((mel - f1 - shift) ** 2) / 3) + torch.exp(
                -((mel - f2 - shift) ** 2) / 3
            )
            feats[i, t : t + dur] += spec
            t += dur
    feats += 0.25 * torch.randn(feats.shape, generator=g)
    return feats, words


class DSBlock(nn.Module):
    def __init__(self, ch: int, dilation: int):
        super().__init__()
        self.dw = nn.Conv1d(
            ch, ch, 5, padding=2 * dilation, dilation=dilation, groups=ch, bias=False
        )
        self.pw = nn.Conv1d(ch, ch, 1, bias=False)
        self.bn = nn.BatchNorm1d(ch)

    def forward(self, x):
        return x + F.relu(self.bn(self.pw(self.dw(x))))


class KeywordSpotter(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        ch = max(1, int(cfg.base_width * cfg.width_mult))
        self.stem = nn.Sequential(
            nn.Conv1d(cfg.n_mels, ch, 5, padding=2, bias=False), nn.BatchNorm1d(ch), nn.ReLU()
        )
        self.blocks = nn.ModuleList([DSBlock(ch, 2**i) for i in range(cfg.depth)])
        self.pool = nn.AdaptiveAvgPool1d(4)
        self.head = nn.Linear(4 * ch, cfg.n_words)

    def forward(self, x):
        x = self.stem(x.transpose(1, 2))
        for block in self.blocks:
            x = block(x)
        return self.head(self.pool(x).flatten(1))


class Trainer:
    def __init__(self, cfg, model, train_loader, val_loader):
        self.cfg, self.model, self.train_loader, self.val_loader = (
            cfg,
            model,
            train_loader,
            val_loader,
        )
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        total = cfg.epochs * len(train_loader)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(
            self.opt, cfg.lr, total_steps=total, pct_start=0.15
        )

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss = hits = n = 0
        for x, y in self.val_loader:
            logits = self.model(x)
            loss += F.cross_entropy(logits, y, reduction="sum").item()
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
        return loss / n, hits / n

    def fit(self):
        best = 0.0
        for epoch in range(self.cfg.epochs):
            self.model.train()
            total = 0.0
            for x, y in self.train_loader:
                loss = F.cross_entropy(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.opt.step()
                self.sched.step()
                total += loss.item()
            val_loss, val_acc = self.validate()
            best = max(best, val_acc)
            print(
                f"epoch {epoch:2d} train {total / len(self.train_loader):.3f} val {val_loss:.3f} acc {val_acc:.3f} best {best:.3f}"  # noqa: E501
            )


cfg = Config()
g = torch.Generator().manual_seed(100 + seed)
lexicon = torch.stack([torch.randperm(8, generator=g)[:4] for _ in range(cfg.n_words)])
formants = torch.stack(
    [torch.rand(8, generator=g) * 10 + 1, torch.rand(8, generator=g) * 10 + 12], 1
)
x, y = synth_corpus(cfg, 2400, g, lexicon, formants)
x_val, y_val = synth_corpus(cfg, 600, g, lexicon, formants)
mean, std = x.mean((0, 1)), x.std((0, 1))
x, x_val = (x - mean) / std, (x_val - mean) / std
train_loader = DataLoader(TensorDataset(x, y), cfg.batch_size, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), 256)
model = KeywordSpotter(cfg)
print(f"{sum(p.numel() for p in model.parameters())} parameters")
Trainer(cfg, model, train_loader, val_loader).fit()
