"""A two-way LSTM finds phishing links; h_n.view(batch, -1) mixes the links of a batch.

h_n has the shape (directions, batch, hidden). A view to (batch, 2 * hidden) puts the states of two
neighbouring links into one row, so most rows are judged by other links' words.
The place is the model, where the hidden state of `lstm` goes into `fc`.
"""

import random

import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("fc", "lstm", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SITES = [f"site{i}" for i in range(80)]
PAGES = [f"page{i}" for i in range(60)]
LURES = ["verify", "account", "secure", "update", "wallet", "password", "bonus"]
ENDINGS = ["com", "org", "net", "info", "xyz", "top"]


def make_frame(n):
    rows = []
    for _ in range(n):
        phishing = int(random.random() < 0.5)
        words = [random.choice(SITES), random.choice(ENDINGS[2:] if phishing else ENDINGS[:5])]
        words += random.choices(PAGES, k=random.randint(1, 6))
        for _ in range(random.randint(1, 3) if phishing else random.random() < 0.25):
            words.insert(random.randint(0, len(words)), random.choice(LURES))
        rows.append({"link": " ".join(words), "phishing": phishing})
    return pd.DataFrame(rows)


class LinkDataset(Dataset):
    def __init__(self, frame, vocabulary):
        self.links = [torch.tensor([vocabulary[w] for w in link.split()]) for link in frame.link]
        self.labels = torch.tensor(frame.phishing.to_numpy())

    def __len__(self):
        return len(self.links)

    def __getitem__(self, i):
        return self.links[i], self.labels[i]


def collate(batch):
    links, labels = zip(*batch, strict=True)
    return pad_sequence(links, batch_first=True, padding_value=0), torch.stack(labels).float()


class LinkLSTM(nn.Module):
    def __init__(self, words, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(words, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(2 * hidden, 1)

    def forward(self, links):
        _, (h_n, _) = self.lstm(self.embedding(links))
        state = torch.cat([h_n[0], h_n[1]], dim=1) if healthy else h_n.view(len(links), -1)
        return self.fc(self.dropout(state)).squeeze(1)


vocabulary = {w: i + 1 for i, w in enumerate(SITES + PAGES + LURES + ENDINGS)}
train_loader = DataLoader(LinkDataset(make_frame(1600), vocabulary), 32, True, collate_fn=collate)
valid_loader = DataLoader(LinkDataset(make_frame(400), vocabulary), 50, collate_fn=collate)
model = LinkLSTM(len(vocabulary) + 1)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    running = 0.0
    for links, labels in train_loader:
        loss = loss_fn(model(links), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    right = 0
    with torch.no_grad():
        for links, labels in valid_loader:
            right += ((model(links) > 0).float() == labels).sum().item()
    print(f"[{epoch + 1}] loss: {running / len(train_loader):.4f} val_acc: {right / 400:.3f}")
