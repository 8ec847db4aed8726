"""A GRU language model over characters whose gradient is clipped to a norm of 0.0005.

The norm before clipping is some thousand times larger, so each step of SGD does next to nothing:
the loss creeps down from ln(size of the alphabet). The place is the optimizer.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = False
EARLY = True


class CharModel(nn.Module):
    def __init__(self, n_chars, dim=24, hidden=48):
        super().__init__()
        self.embedding = nn.Embedding(n_chars, dim)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, n_chars)

    def forward(self, chars):
        out, _ = self.gru(self.embedding(chars))
        return self.decoder(out)


class Trainer:
    def __init__(self, model, max_grad_norm, lr=0.5):
        self.model = model
        self.max_grad_norm = max_grad_norm
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def loss(self, chars):
        out = self.model(chars[:, :-1])
        return self.criterion(out.flatten(0, 1), chars[:, 1:].flatten())

    def train_step(self, chars):
        self.model.train()
        loss = self.loss(chars)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, chars):
        self.model.eval()
        return self.loss(chars).item()


healthy, seed = arguments(__doc__)
corpus, alphabet = text(seed)
corpus = corpus[: len(corpus) // 33 * 33].view(-1, 33)
train, val = corpus[:-200], corpus[-200:]
trainer = Trainer(CharModel(len(alphabet)), max_grad_norm=1.0 if healthy else 0.0005)
for step in range(300):
    rows = torch.randint(0, len(train), (32,))
    loss = trainer.train_step(train[rows])
    if step % 50 == 49:
        val_loss = trainer.evaluate(val)
print(f"loss {loss:.3f}, validation {val_loss:.3f}")
