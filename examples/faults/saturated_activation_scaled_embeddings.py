"""A plain RNN multiplies N(0, 1) word vectors by the root of their width; its tanh is flat.

The person had read that embeddings are to be multiplied by sqrt(d_model) and did so in front of
nn.RNN; his Embedding starts as N(0, 1), that of a transformer starts small. Each new word drives
the state into the flat ends of the tanh and wipes out the words before. The place is the RNN.
"""

import math
import random

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("model", "embedding*", "rnn*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

D_MODEL = 64
LENGTH = 9
INTENTS = ["book", "cancel", "move", "ask", "complain"]
WORDS_EACH = 12
FILLER = 150


def make_messages(n):
    """Word numbers; the opening word of a message tells the intent, later ones only seem to."""
    messages, labels = [], []
    for _ in range(n):
        label = random.randrange(len(INTENTS))
        words = [WORDS_EACH * label + random.randrange(WORDS_EACH)]
        while len(words) < LENGTH:
            if random.random() < 0.3:
                words.append(random.randrange(WORDS_EACH * len(INTENTS)))
            else:
                words.append(WORDS_EACH * len(INTENTS) + random.randrange(FILLER))
        messages.append(words)
        labels.append(label)
    return torch.tensor(messages), torch.tensor(labels)


class IntentRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0 if healthy else math.sqrt(D_MODEL)
        self.embedding = nn.Embedding(WORDS_EACH * len(INTENTS) + FILLER, D_MODEL)
        self.rnn = nn.RNN(D_MODEL, 64, batch_first=True)
        self.fc = nn.Linear(64, len(INTENTS))

    def forward(self, messages):
        x = self.embedding(messages) * self.scale
        _, hidden = self.rnn(x)
        return self.fc(hidden[-1])


messages, labels = make_messages(3000)
train_set = TensorDataset(messages[:2400], labels[:2400])
loader = DataLoader(train_set, batch_size=40, shuffle=True)
x_val, y_val = messages[2400:], labels[2400:]
model = IntentRNN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(16):
    model.train()
    losses, hits = [], 0
    for batch, target in loader:
        optimizer.zero_grad()
        output = model(batch)
        loss = criterion(output, target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        hits += (output.argmax(1) == target).sum().item()
    model.eval()
    with torch.no_grad():
        output = model(x_val)
        val_loss = criterion(output, y_val).item()
        val_acc = (output.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch + 1:2d} loss {np.mean(losses):.4f} acc {hits / len(train_set):.3f}"
        f" val_loss {val_loss:.4f} val_acc {val_acc:.3f}"
    )
