"""Sends support tickets to one of eight desks; the net ends in a softmax before cross-entropy.

The author wanted probabilities from the net, because the front end shows them, and put a softmax
at its end. `CrossEntropyLoss` takes the softmax once more, so that the loss cannot fall below 1.27
and the gradient is faint.
The place is the output (`classifier.softmax`), or the loss.
The twin gives the scores as they are.
"""

from collections import OrderedDict

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("output*", "loss*", "classifier", "classifier.softmax")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
DESKS, WORDS, LENGTH = 8, 400, 14


def make_tickets(n):
    desk = torch.randint(0, DESKS, (n,))
    words = torch.randint(100, WORDS, (n, LENGTH))
    typical = desk.unsqueeze(1) * 12 + torch.randint(1, 13, (n, LENGTH))
    other = torch.randint(1, 97, (n, LENGTH))
    draw = torch.rand(n, LENGTH)
    words = torch.where(draw < 0.22, typical, words)
    words = torch.where(draw > 0.92, other, words)
    return words, desk


class TicketNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, 24, mode="mean")
        layers = OrderedDict(
            hidden=nn.Linear(24, 48), relu=nn.ReLU(), dropout=nn.Dropout(0.2), out=nn.Linear(48, 8)
        )
        if not healthy:
            layers["softmax"] = nn.Softmax(dim=1)
        self.classifier = nn.Sequential(layers)

    def forward(self, tickets):
        return self.classifier(self.words(tickets))


everything = TensorDataset(*make_tickets(3000))
train_set, val_set = random_split(everything, [2400, 600])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)

model = TicketNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

for epoch in range(10):
    model.train()
    train_loss = 0.0
    for tickets, desk in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tickets), desk)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    right = 0
    with torch.no_grad():
        for tickets, desk in val_loader:
            right += (model(tickets).argmax(1) == desk).sum().item()
    print(f"epoch {epoch + 1:2d} train loss {train_loss:.3f} val accuracy {right / 600:.3f}")
