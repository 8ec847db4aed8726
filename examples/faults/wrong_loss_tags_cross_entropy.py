"""A tagger that may give a message several tags is trained with the cross entropy over the tags.

CrossEntropyLoss takes the rows of 0s and 1s as class probabilities and makes the tags compete by
the softmax, although they are independent and a message may have none or four; a message without
tags adds nothing to the loss. The loss falls, but the sigmoid at 0.5 that is used for prediction
gives many wrong tags. The twin uses BCEWithLogitsLoss. The place is the loss, `head` or the labels.
"""

import torch
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "head", "label*", "classes*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
TAGS, WORDS, LENGTH = 8, 240, 20


def messages(n):
    """Each tag has eight words; a message has two for each of its tags, sometimes a stray one."""
    tags = (torch.rand(n, TAGS) < 0.12).float()
    x = torch.randint(TAGS * 8, WORDS, (n, LENGTH))
    stray = torch.rand(n, LENGTH) < 0.05
    x[stray] = torch.randint(0, TAGS * 8, (int(stray.sum()),))
    for row in range(n):
        place = torch.randperm(LENGTH)
        for k, tag in enumerate(tags[row].nonzero().flatten().tolist()):
            x[row, place[2 * k : 2 * k + 2]] = tag * 8 + torch.randint(0, 8, (2,))
    return x, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 32)
        self.hidden = nn.Linear(32, 32)
        self.head = nn.Linear(32, TAGS)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(self.embedding(x).mean(1) * 3)))


x_train, y_train = messages(2400)
x_val, y_val = messages(600)
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)


def f1(out, y):
    said = (out.sigmoid() > 0.5).float()
    both = (said * y).sum()
    return (2 * both / (said.sum() + y.sum())).item()


for epoch in range(1, 25):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(48):
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    if epoch % 4 == 0:
        print(
            f"epoch {epoch} train {total / len(x_train):.4f} "
            f"val {criterion(out, y_val):.4f} F1 {f1(out, y_val):.3f}"
        )
