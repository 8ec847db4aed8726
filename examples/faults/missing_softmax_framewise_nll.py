"""Phones frame by frame from filter banks; the NLL criterion gets logits instead of
log-probabilities.

The log_softmax was taken out of `forward` when the decoder asked for raw scores, and the criterion
stayed `nn.NLLLoss`, which does not check. The loss goes below zero without limit, since raising a
frequent class's score everywhere lowers it, and silence wins. The place is the loss's input, what
comes out of `head`. The twin keeps the log_softmax.
"""

import torch
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "head")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PHONES, BANDS, FRAMES = 8, 12, 30
SILENCE = 0


def speech(count, spectra):
    """Three or four phones in silence, each held for three to five frames with soft borders."""
    labels = torch.full((count, FRAMES), SILENCE)
    for row in labels:
        at = int(torch.randint(0, 8, ()))
        for _ in range(int(torch.randint(3, 5, ()))):
            held = int(torch.randint(3, 6, ()))
            row[at : at + held] = int(torch.randint(1, PHONES, ()))
            at += held
    clean = spectra[labels]
    clean[:, 1:] = 0.7 * clean[:, 1:] + 0.3 * clean[:, :-1]
    return clean + 0.9 * torch.randn(count, FRAMES, BANDS), labels


class Frames(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(BANDS, width, 3, padding=1), nn.ReLU())
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, PHONES)

    def forward(self, x):
        states, _ = self.gru(self.stem(x.transpose(1, 2)).transpose(1, 2))
        scores = self.head(states)
        return scores.log_softmax(-1) if healthy else scores


class Session:
    """Everything that a training needs, with one method for each of its parts."""

    def __init__(self, epochs=8, batch=25):
        spectra = torch.randn(PHONES, BANDS)
        spectra[SILENCE] = 0
        self.train_set, self.val_set = speech(800, spectra), speech(200, spectra)
        self.model, self.criterion = Frames(), nn.NLLLoss()
        self.epochs, self.batch = epochs, batch
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)

    def loss(self, x, labels):
        found = self.model(x)
        return self.criterion(found.flatten(0, 1), labels.flatten()), found

    def step(self, rows):
        self.model.train()
        loss, _ = self.loss(self.train_set[0][rows], self.train_set[1][rows])
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        loss, found = self.loss(*self.val_set)
        labels, spoken = self.val_set[1], self.val_set[1] != SILENCE
        wrong = found.argmax(-1) != labels
        return loss.item(), wrong.float().mean().item(), wrong[spoken].float().mean().item()

    def run(self):
        for epoch in range(self.epochs):
            for rows in torch.randperm(len(self.train_set[0])).split(self.batch):
                loss = self.step(rows)
            self.schedule.step()
            val_loss, wrong, missed = self.evaluate()
            print(
                f"epoch {epoch} loss {loss:.3f} val loss {val_loss:.3f} "
                f"val error {wrong:.3f} of phones {missed:.3f}"
            )
        return wrong, missed


wrong, missed = Session().run()
print(f"validation frame error {wrong:.3f}, of the phones {missed:.3f}")
