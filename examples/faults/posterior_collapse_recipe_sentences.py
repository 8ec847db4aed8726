"""Sentence VAE whose decoder always sees the true previous word and never needs the latent code.

The person trained the decoder with plain teacher forcing and the full KL weight from the first
step. The decoder learns to go by the words before, the KL term falls to nothing, and all sentences
get one and the same code. The place is the loss (its KL term) and the model's latent code.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "posterior_collapse"
ACCEPT = ("representation_collapse",)
PLACE = ("loss", "model", "to_mean*", "to_logvar*", "encoder*", "decoder*", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

VERBS = ("chop", "peel", "boil", "fry", "rinse", "grate", "mash", "roast")
HOW = ("slowly", "finely", "gently", "quickly", "twice", "again")
WHAT = ("carrots", "onions", "apples", "beans", "rice", "leeks", "plums", "beets")
WITH = ("butter", "salt", "wine", "sugar", "herbs", "oil")
WORDS = ("<s>", "<drop>", "the", "with", *VERBS, *HOW, *WHAT, *WITH)
NUMBER = {word: i for i, word in enumerate(WORDS)}
START, DROP = 0, 1


def favourite(pool, kitchen):
    return pool[kitchen % len(pool)] if random.random() < 0.85 else random.choice(pool)


def sentences(count):
    """Each sentence comes from one of eight kitchens, which has its own favourite words."""
    rows = []
    for _ in range(count):
        kitchen = random.randrange(8)
        verb, how = favourite(VERBS, kitchen), favourite(HOW, kitchen * 5 + kitchen // 6)
        what, extra = favourite(WHAT, kitchen * 3 + 1), favourite(WITH, kitchen + kitchen // 6 * 3)
        rows.append([NUMBER[w] for w in (verb, "the", what, how, "with", extra)])
    return torch.tensor(rows)


class SentenceVAE(nn.Module):
    def __init__(self, embedding=32, hidden=64, latent=16, word_dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), embedding)
        self.encoder = nn.GRU(embedding, hidden, batch_first=True)
        self.to_mean = nn.Linear(hidden, latent)
        self.to_logvar = nn.Linear(hidden, latent)
        self.to_hidden = nn.Linear(latent, hidden)
        self.decoder = nn.GRU(embedding + latent, hidden, batch_first=True)
        self.to_word = nn.Linear(hidden, len(WORDS))
        self.word_dropout = word_dropout

    def decode(self, z, rows):
        previous = torch.cat([torch.full_like(rows[:, :1], START), rows[:, :-1]], 1)
        if self.training and self.word_dropout:
            dropped = torch.rand(previous.shape) < self.word_dropout
            previous = previous.masked_fill(dropped, DROP)
        steps = torch.cat([self.embed(previous), z.unsqueeze(1).expand(-1, rows.shape[1], -1)], 2)
        states, _ = self.decoder(steps, torch.tanh(self.to_hidden(z)).unsqueeze(0))
        return self.to_word(states)

    def forward(self, rows):
        _, last = self.encoder(self.embed(rows))
        mean, logvar = self.to_mean(last[0]), self.to_logvar(last[0])
        z = mean
        if self.training:
            z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decode(z, rows), mean, logvar


def loss_terms(logits, rows, mean, logvar):
    words = F.cross_entropy(logits.flatten(0, 1), rows.flatten(), reduction="sum") / len(rows)
    kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
    return words, kl


def kl_weight(step):
    return min(0.5, step / 800) if healthy else 1.0


def main():
    train, val = sentences(3000), sentences(500)
    vae = SentenceVAE(word_dropout=0.6 if healthy else 0.0)
    optimizer = torch.optim.Adam(vae.parameters(), lr=3e-3)
    step = 0
    for epoch in range(15):
        vae.train()
        for index in torch.randperm(len(train)).split(64):
            rows = train[index]
            logits, mean, logvar = vae(rows)
            words, kl = loss_terms(logits, rows, mean, logvar)
            optimizer.zero_grad()
            (words + kl_weight(step) * kl).backward()
            nn.utils.clip_grad_norm_(vae.parameters(), 5.0)
            optimizer.step()
            step += 1
        vae.eval()
        with torch.no_grad():
            logits, mean, logvar = vae(val)
            val_words, val_kl = loss_terms(logits, val, mean, logvar)
            right = (logits.argmax(2) == val).float().mean()
        if epoch % 3 == 2:
            print(
                f"epoch {epoch:2d} words {val_words:.2f} kl {val_kl:.3f} "
                f"words right {right:.3f} spread of codes {mean.std(0).mean():.3f}"
            )


main()
