"""A self-trained net labels its unlabelled sounds after every round in eval mode and goes on
training in eval mode, without its dropout.

`label_the_rest` calls `model.eval()` and nothing calls `model.train()` after the first round. With
100 labelled sounds the net then learns them by heart, along with its own wrong labels. The place is
the loop, at the relabelling.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "model", "layers*", "[0-9]*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

BANDS, SOUNDS, LABELLED, SURE = 40, 5, 100, 0.9


def sounds(count):
    centre = torch.tensor([6.0, 11.0, 17.0, 23.0, 30.0])
    kind = torch.randint(0, SOUNDS, (count,))
    band = torch.arange(BANDS)
    shift = 1.6 * torch.randn(count, 1)
    near = centre[kind].unsqueeze(1) + shift
    energy = torch.exp(-((band - near) ** 2) / 6) + 0.5 * torch.exp(
        -((band - 1.5 * near) ** 2) / 10
    )
    return energy + 0.35 * torch.randn(count, BANDS), kind


class SoundNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(0.2), nn.Linear(BANDS, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Dropout(0.5), nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Dropout(0.5), nn.Linear(width, SOUNDS),
        )  # fmt: skip

    def forward(self, energy):
        return self.layers(energy)


@torch.no_grad()
def label_the_rest(model, energy):
    model.eval()
    chance, guess = model(energy).softmax(1).max(1)
    sure = chance > SURE
    return energy[sure], guess[sure]


@torch.no_grad()
def validate(model, energy, kind):
    training = model.training
    model.eval()
    score = model(energy)
    model.train(training)
    return F.cross_entropy(score, kind).item(), (score.argmax(1) == kind).float().mean().item()


def main():
    energy, kind = sounds(1600)
    energy = (energy - energy[:1100].mean(0)) / energy[:1100].std(0)
    labelled = energy[:LABELLED], kind[:LABELLED]
    unlabelled, val = energy[LABELLED:1100], (energy[1100:], kind[1100:])
    model = SoundNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    extra = energy[:0], kind[:0]
    model.train()
    for round_ in range(8):
        if healthy:
            model.train()
        x, y = torch.cat([labelled[0], extra[0]]), torch.cat([labelled[1], extra[1]])
        for _ in range(60):
            rows, own = torch.randint(0, len(x), (32,)), torch.randint(0, LABELLED, (32,))
            score = model(torch.cat([x[rows], labelled[0][own]]))
            loss = F.cross_entropy(score, torch.cat([y[rows], labelled[1][own]]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        val_loss, accuracy = validate(model, *val)
        extra = label_the_rest(model, unlabelled)
        print(f"round {round_} loss {loss.item():.3f} validation {val_loss:.3f} accuracy "
              f"{accuracy:.3f} labelled by itself {len(extra[0])}")  # fmt: skip


main()
