"""A small transformer mirrors melodies; its KLDivLoss with label smoothing gets raw scores.

The label-smoothing loss of the annotated transformer wants log-probabilities, but the generator is
a bare Linear. The loss goes to minus infinity and notes come out wrong.
The place is the loss (the log_softmax of the generator is missing).
"""

import torch
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss", "generator", "generator.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

NOTES, LENGTH, WIDTH = 12, 8, 48


class LabelSmoothing(nn.Module):
    def __init__(self, size, smoothing=0.1):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="batchmean")
        self.size, self.smoothing = size, smoothing

    def forward(self, output, target):
        output, target = output.flatten(0, 1), target.flatten()
        truth = torch.full_like(output, self.smoothing / (self.size - 1))
        truth.scatter_(1, target.unsqueeze(1), 1 - self.smoothing)
        return self.criterion(output, truth)


class Generator(nn.Module):
    def __init__(self, width, notes):
        super().__init__()
        self.proj = nn.Linear(width, notes)

    def forward(self, x):
        scores = self.proj(x)
        return torch.log_softmax(scores, dim=-1) if healthy else scores


class MelodyTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(NOTES, WIDTH)
        self.position = nn.Parameter(torch.randn(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.generator = Generator(WIDTH, NOTES)

    def forward(self, melody):
        return self.generator(self.encoder(self.embed(melody) + self.position))


def melodies(n):
    first = torch.randint(0, NOTES, (n, 1))
    steps = torch.randint(-3, 4, (n, LENGTH - 1))
    source = torch.cat([first, steps], 1).cumsum(1) % NOTES
    return source, (source.flip(1) + 5) % NOTES


def main():
    model = MelodyTransformer()
    criterion = LabelSmoothing(NOTES)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=50)
    val_source, val_target = melodies(300)
    for step in range(1, 251):
        model.train()
        source, target = melodies(64)
        loss = criterion(model(source), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                right = (model(val_source).argmax(-1) == val_target).float()
            print(
                f"step {step} loss {loss.item():.3f} notes right {right.mean():.3f} "
                f"whole melodies {right.prod(1).mean():.3f}"
            )


main()
