"""An LSTM classifies reviews; its gradients are clipped to a norm of 1e-4.

Clipping was added against spikes and the bound turned down until the curve was smooth. With SGD
each step is now a millionth of what it ought to be. The place is the loop. The twin clips to 1.
"""

import torch
from data import arguments, reviews
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MAX_NORM = 1.0 if healthy else 1e-4
x, y, words = reviews(seed, n=1600)
lengths = (x != 0).sum(1)
split = 1200


class LSTMClassifier(nn.Module):
    def __init__(self, dim=24, hidden=24):
        super().__init__()
        self.embedding = nn.Embedding(words, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 2)

    def forward(self, tokens, lengths):
        out, _ = self.lstm(self.embedding(tokens))
        mask = (torch.arange(tokens.shape[1]) < lengths[:, None]).unsqueeze(-1)
        return self.linear((out * mask).sum(1) / lengths[:, None])


class Trainer:
    def __init__(self):
        self.model = LSTMClassifier()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.3, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()

    def step(self, rows):
        self.model.train()
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x[rows], lengths[rows]), y[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits = self.model(x[split:], lengths[split:])
        accuracy = (logits.argmax(1) == y[split:]).float().mean().item()
        return self.loss(logits, y[split:]).item(), accuracy

    def train(self, epochs):
        for epoch in range(epochs):
            losses = [self.step(rows) for rows in torch.randperm(split).split(60)]
            val_loss, accuracy = self.evaluate()
            print(
                f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} "
                f"val loss {val_loss:.4f} accuracy {accuracy:.3f}"
            )


Trainer().train(6)
