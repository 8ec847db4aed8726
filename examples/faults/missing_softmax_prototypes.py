"""Prototypical networks learn to tell new plant species from five leaves each; the distances go
into nll_loss without log_softmax.

F.nll_loss(-distances, y) is positive, falls steadily and has its minimum where all embeddings are
one point: only the distance to one's own prototype counts. The place is the loss.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ("representation_collapse",)
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

N_WAY, K_SHOT, N_QUERY = 8, 5, 10
EPISODES, EVAL_EVERY = 800, 200


class Species:
    """Leaf outlines as 64 radii: each species has its own Fourier shape; leaves turn, grow and are measured badly."""  # noqa: E501

    def __init__(self, n, rng):
        self.rng = rng
        self.amp = rng.gamma(2.0, 0.5, (n, 6)) / np.arange(1, 7)
        self.phase = rng.uniform(0, 2 * np.pi, (n, 6))
        self.angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)

    def leaves(self, species, count):
        r = self.rng
        k = np.arange(1, 7)
        amp = self.amp[species][:, None] * r.normal(1, 0.22, (len(species), count, 6))
        phase = (
            self.phase[species][:, None]
            + r.normal(0, 0.25, (len(species), count, 6))
            + k * r.normal(0, 0.3, (len(species), count, 1))
        )
        wave = amp[..., None] * np.cos(k[:, None] * self.angle + phase[..., None])
        x = wave.sum(2) + r.normal(0, 0.45, (len(species), count, 64))
        return torch.tensor(x, dtype=torch.float32)

    def episode(self, n_way=N_WAY, k_shot=K_SHOT, n_query=N_QUERY):
        species = self.rng.choice(len(self.amp), n_way, replace=False)
        x = self.leaves(species, k_shot + n_query)
        y = torch.arange(n_way).repeat_interleave(n_query)
        return x[:, :k_shot], x[:, k_shot:].reshape(-1, 64), y


class LeafEncoder(nn.Module):
    def __init__(self, out=32):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, padding=2, padding_mode="circular")
        self.conv2 = nn.Conv1d(16, 32, 5, stride=2, padding=2, padding_mode="circular")
        self.fc = nn.Linear(32 * 16, out)

    def forward(self, x):
        h = F.max_pool1d(F.relu(self.conv1(x.unsqueeze(1))), 2)
        h = F.relu(self.conv2(h))
        return self.fc(h.flatten(1))


def distances(encoder, support, query):
    n, k, d = support.shape
    proto = encoder(support.reshape(n * k, d)).view(n, k, -1).mean(1)
    return torch.cdist(encoder(query), proto).pow(2)


rng = np.random.default_rng(700 + seed)
train_species, val_species = Species(80, rng), Species(40, np.random.default_rng(800 + seed))
val_episodes = [val_species.episode() for _ in range(20)]
encoder = LeafEncoder()
opt = torch.optim.Adam(encoder.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=300, gamma=0.5)
smooth = None
for episode in range(1, EPISODES + 1):
    encoder.train()
    d = distances(encoder, *train_species.episode()[:2])
    y = torch.arange(N_WAY).repeat_interleave(N_QUERY)
    scores = F.log_softmax(-d, dim=1) if healthy else -d
    loss = F.nll_loss(scores, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
    if episode % EVAL_EVERY == 0:
        encoder.eval()
        with torch.no_grad():
            acc = np.mean(
                [
                    (distances(encoder, s, q).argmin(1) == t).float().mean().item()
                    for s, q, t in val_episodes
                ]
            )
        print(f"episode {episode} loss {smooth:.4f} accuracy on new species {acc:.4f}")
