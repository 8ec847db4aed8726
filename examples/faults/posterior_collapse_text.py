"""A variational auto-encoder for sentences whose decoder sees every character before the next one.

The decoder does without the latent vector, and the KL term, in full from the first step on, drives
that to nothing. The loss falls (silent). The place is the layers of mean and variance.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, text
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("representation_collapse",)
PLACE = ("mean*", "log_var*", "decoder*", "start*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 400)
rows = ids[: len(ids) // 13 * 13].view(-1, 13)


class SentenceVAE(nn.Module):
    def __init__(self, n, width=28, latent=8):
        super().__init__()
        self.embed = nn.Embedding(n, 16)
        self.encoder = nn.GRU(16, width, batch_first=True)
        self.mean = nn.Linear(width, latent)
        self.log_var = nn.Linear(width, latent)
        self.start = nn.Linear(latent, width)
        self.decoder = nn.GRU(16, width, batch_first=True)
        self.head = nn.Linear(width, n)

    def forward(self, chars):
        h = self.embed(chars)
        last = self.encoder(h)[1][0]
        mean, log_var = self.mean(last), self.log_var(last)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        out, _ = self.decoder(h[:, :-1], torch.tanh(self.start(z))[None])
        return self.head(out), mean, log_var


model = SentenceVAE(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step, (chars,) in enumerate(batches(rows, size=24, steps=130, seed=seed)):
    scores, mean, log_var = model(chars)
    error = F.cross_entropy(scores.flatten(0, 1), chars[:, 1:].flatten(), reduction="sum") / 24
    kl = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum(1).mean()
    beta = min(0.1, step / 2000) if healthy else 1.0
    loss = error + beta * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"error {error.item():.2f}, kl {kl.item():.4f}")
