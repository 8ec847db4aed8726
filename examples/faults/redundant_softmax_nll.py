"""Spoken syllables by a recurrent network; the probabilities of its softmax go through log_softmax
once more.

predict() wants probabilities, so the user ended the model with softmax; the loss is
nll_loss(log_softmax(...)) as in the old script. With 48 classes the loss can't come below 2.9,
and the gradient is weak. The place is the output of the model and the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "prob", "fc", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

N_CLASSES = 48
STEPS, BATCH = 360, 40
rng = np.random.default_rng(seed)

# consonant (6 bursts, voiced or not) x vowel (4 formant pairs)
VOWELS = np.array([[0.25, 0.55], [0.3, 0.8], [0.45, 0.65], [0.15, 0.4]])
BURST = np.array([0.1, 0.25, 0.4, 0.55, 0.75, 0.95])
band = np.linspace(0, 1, 18)


def syllable(label):
    c, v = divmod(label, 4)
    frames = np.full((22, 18), 0.05)
    onset = rng.integers(1, 5)
    centre, voiced = BURST[c % 6] + 0.03 * rng.normal(), c >= 6
    frames[onset : onset + 3] += 1.1 * np.exp(-((band - centre) ** 2) / 0.02)
    if voiced:
        frames[max(0, onset - 2) : onset + 3] += 0.7 * np.exp(-(band**2) / 0.01)
    glide = np.linspace(1, 0, 12)[:, None]
    for f in VOWELS[v]:
        f = f + 0.035 * rng.normal()  # noqa: PLW2901
        track = f + glide * 0.25 * (centre - f)
        frames[onset + 3 : onset + 15] += rng.uniform(0.6, 1.1) * np.exp(
            -((band - track) ** 2) / 0.006
        )
    frames = np.log(frames * rng.uniform(0.6, 1.6) + 0.12 * rng.random(frames.shape))
    return frames  # noqa: RET504


labels = rng.integers(0, N_CLASSES, 4400)
feats = np.stack([syllable(int(l)) for l in labels])  # noqa: E741
feats = (feats - feats[:3800].mean((0, 1))) / feats[:3800].std((0, 1))
X, Y = torch.tensor(feats, dtype=torch.float32), torch.tensor(labels)
X_tr, Y_tr, X_va, Y_va = X[:3800], Y[:3800], X[3800:], Y[3800:]


class Speller(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(18, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(2 * hidden, N_CLASSES)
        self.prob = nn.Identity() if healthy else nn.Softmax(dim=-1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.prob(self.fc(self.drop(h.amax(1))))


net = Speller()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
history = []
for step in range(STEPS):
    net.train()
    i = torch.randint(0, 3800, (BATCH,))
    loss = F.nll_loss(F.log_softmax(net(X_tr[i]), dim=-1), Y_tr[i])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    sched.step()
    history.append(loss.item())
    if step % 90 == 89:
        net.eval()
        with torch.no_grad():
            acc = (net(X_va).argmax(-1) == Y_va).float().mean().item()
        print(f"{step + 1}: loss {np.mean(history[-90:]):.3f}, val accuracy {acc:.3f}")
