"""Two towers for podcast listeners, kept in a dataclass, so that the model does not know them.

The user's and the episode's network sit in a plain dataclass that is an attribute of the module.
`parameters()` does not reach into it: only the scale and the embedding table are trained, the
two towers stay random projections. The place is the model: `towers`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("model", "towers*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def tower(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, width))


@dataclass
class TowersRecord:
    user: nn.Module
    episode: nn.Module


class TowersModule(nn.Module):
    def __init__(self, user: nn.Module, episode: nn.Module) -> None:
        super().__init__()
        self.user, self.episode = user, episode


Towers = TowersModule if healthy else TowersRecord


class PodcastRetrieval(nn.Module):
    def __init__(self, profile: int, words: int, shows: int, width: int = 16) -> None:
        super().__init__()
        self.show = nn.Embedding(shows, 6)
        self.towers = Towers(user=tower(profile, width), episode=tower(words + 6, width))
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def vectors(self, profile: Tensor, words: Tensor, show: Tensor) -> tuple[Tensor, Tensor]:
        user = self.towers.user(profile)
        episode = self.towers.episode(torch.cat([words, self.show(show)], -1))
        return nn.functional.normalize(user, dim=-1), nn.functional.normalize(episode, dim=-1)

    def forward(self, profile: Tensor, words: Tensor, show: Tensor) -> Tensor:
        user, episode = self.vectors(profile, words, show)
        return self.log_scale.exp() * user @ episode.T


def listens(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """A listener's profile and an episode that suits it, both mixed from the same interests."""
    g = torch.Generator().manual_seed(77 + seed)
    into_profile, into_words = torch.randn(6, 20, generator=g), torch.randn(6, 30, generator=g)
    interest = torch.randn(n, 6, generator=g)
    profile = torch.tanh(interest @ into_profile) + 0.2 * torch.randn(n, 20, generator=g)
    words = torch.relu(interest @ into_words) + 0.4 * torch.randn(n, 30, generator=g)
    show = (interest @ torch.randn(6, 12, generator=g)).argmax(-1)
    return profile, (words - words.mean(0)) / words.std(0), show


def main() -> None:
    n_train, batch = 4000, 100
    rows = listens(4500)
    train, held_out = [part[:n_train] for part in rows], [part[n_train:] for part in rows]
    model = PodcastRetrieval(profile=20, words=30, shows=12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-3, total_steps=n_train // batch * 10
    )
    diagonal = torch.arange(batch)
    for epoch in range(10):
        model.train()
        total = 0.0
        for chosen in torch.randperm(n_train).split(batch):
            scores = model(*(part[chosen] for part in train))
            loss = (
                nn.functional.cross_entropy(scores, diagonal)
                + nn.functional.cross_entropy(scores.T, diagonal)
            ) / 2
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            total += loss.item() * batch / n_train
        model.eval()
        with torch.no_grad():
            scores = model(*held_out)
            own = scores.diagonal().unsqueeze(1)
            recall = ((scores > own).sum(1) < 10).float().mean()
        print(f"{epoch:2d}  loss {total:.3f}  recall at 10 of 500 {recall:.3f}")


main()
