"""A masked-word model with tied words and label smoothing, whose loss stays far above zero.

With a smoothing of 0.2 the loss cannot fall below the entropy of the smoothed targets, about
1.18, and it comes to rest close above that while nearly every word is right. The output layer and
the embedding are one tensor on purpose.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "the loss rests at about 1.2 at accuracy near 1 (label smoothing); two layers share a tensor"
_, seed = arguments(__doc__)

SMOOTHING, LENGTH = 0.2, 6
DISHES = ["soup", "rice", "cake", "salad", "fish", "bread", "stew", "pie"]
TOOLS = ["spoon", "bowl", "knife", "fork", "grill", "oven", "pot", "tin"]
PLACES = ["kitchen", "garden", "bakery", "market", "harbour", "mill", "camp", "inn"]
COOKS = ["anna", "boris", "clara", "david", "emma", "felix", "greta", "hugo"]
WORDS = ["<mask>", "cooks", "with", *DISHES, *TOOLS, *PLACES, *COOKS]
CODE = {word: number for number, word in enumerate(WORDS)}


def sentences(count, r):
    """Cook, dish, tool and place go together by a number, so that one tells the others."""
    rows = []
    for _ in range(count):
        which, where = r.randrange(8), r.randrange(8)
        cook = COOKS[(which + where) % 8]
        row = [cook, "cooks", DISHES[which], "with", TOOLS[which], PLACES[where]]
        rows.append([CODE[word] for word in row])
    return torch.tensor(rows)


class TiedModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), width)
        nn.init.normal_(self.words.weight, std=width**-0.5)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, len(WORDS))
        self.out.weight = self.words.weight

    def forward(self, rows):
        return self.out(self.norm(self.encoder(self.words(rows) + self.places)))


def mask_one(rows):
    place = torch.tensor([0, 2, 4, 5])[torch.randint(0, 4, (len(rows),))]
    each = torch.arange(len(rows))
    asked = rows[each, place]
    masked = rows.clone()
    masked[each, place] = CODE["<mask>"]
    return masked, each, place, asked


def scores_and_answers(model, rows):
    masked, each, place, asked = mask_one(rows)
    return model(masked)[each, place], asked


def main():
    r = random.Random(seed)
    train, valid = sentences(4000, r), sentences(600, r)
    model = TiedModel()
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    epochs, per_epoch = 10, 50
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    warm = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * per_epoch)
    for epoch in range(epochs):
        model.train()
        losses = []
        for rows in torch.randperm(len(train)).split(80):
            loss = criterion(*scores_and_answers(model, train[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            warm.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            scores, asked = scores_and_answers(model, valid)
        print(
            f"epoch {epoch + 1:2d} smoothed loss {sum(losses) / len(losses):.3f} "
            f"val plain loss {F.cross_entropy(scores, asked).item():.3f} "
            f"accuracy {(scores.argmax(1) == asked).float().mean().item():.3f}"
        )


main()
