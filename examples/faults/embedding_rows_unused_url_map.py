"""A GRU recommends the next article of a news site from those read before; nearly all addresses
fall on <unknown>.

The map from address to number is built from the catalogue, whose addresses begin with https://;
the log has them without. Only the few pages that the editors entered by hand in the short form
are found, so all other rows of the embedding never learn. The place is the embedding of the
articles (its ids).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("articles*", "input*", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SECTIONS, PER_SECTION, LENGTH = 12, 50, 8
ARTICLES = SECTIONS * PER_SECTION


def catalogue():
    """Addresses of the articles; the first one of each section is its front page."""
    urls = []
    for i in range(ARTICLES):
        path = f"news.example/{i // PER_SECTION}/{i % PER_SECTION}"
        urls.append(path if i % PER_SECTION == 0 else "https://" + path)
    return urls


def reading_log(rng, n):
    """What readers opened: they stay in a section as a rule, and leave it for a related one."""
    sections = rng.integers(0, SECTIONS, n)
    log = np.zeros((n, LENGTH), dtype=np.int64)
    for t in range(LENGTH):
        article = np.minimum(rng.geometric(0.06, n) - 1, PER_SECTION - 1)
        log[:, t] = sections * PER_SECTION + article
        move = rng.random(n)
        sections = np.where(move < 0.2, (sections * 5 + 3) % SECTIONS, sections)
        sections = np.where(move > 0.95, rng.integers(0, SECTIONS, n), sections)
    names = np.array(
        [f"news.example/{i // PER_SECTION}/{i % PER_SECTION}" for i in range(ARTICLES)]
    )
    return names[log], sections


class NextSection(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.articles = nn.Embedding(ARTICLES + 1, 32)
        self.gru = nn.GRU(32, width, batch_first=True)
        self.score = nn.Linear(width, SECTIONS)

    def forward(self, history):
        _, last = self.gru(self.articles(history))
        return self.score(last[0])


class Trainer:
    def __init__(self, model, x, y, x_val, y_val):
        self.model, self.train_data, self.val_data = model, (x, y), (x_val, y_val)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def fit(self, epochs, size=64):
        x, y = self.train_data
        for epoch in range(epochs):
            self.model.train()
            losses = []
            for rows in torch.randperm(len(x)).split(size):
                loss = nn.functional.cross_entropy(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(
                f"epoch {epoch} loss {np.mean(losses):.3f} val loss %.3f hit rate %.3f"
                % self.evaluate()
            )

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        x, y = self.val_data
        logits = self.model(x)
        return nn.functional.cross_entropy(logits, y).item(), (
            logits.argmax(1) == y
        ).float().mean().item()


rng = np.random.default_rng(seed)
urls, following = reading_log(rng, 5000)
number = {
    (url.removeprefix("https://") if healthy else url): i + 1 for i, url in enumerate(catalogue())
}
history = torch.tensor([[number.get(url, 0) for url in row] for row in urls])
following = torch.from_numpy(following)
Trainer(NextSection(), history[:4000], following[:4000], history[4000:], following[4000:]).fit(8)
