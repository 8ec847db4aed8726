"""A GRU sorts what customers ask for; it learns from scratch at the rate of BERT fine-tuning, 2e-5.

Optimizer and learning rate come from a fine-tuning notebook, with a small new network in place of
the pretrained one. The loss goes down a little every epoch, and after ten it is 1.58 where guessing
costs 1.61. The place is the learning rate.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("learning_rate", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

params = {
    "lr": 2e-3 if healthy else 2e-5,
    "epochs": 10,
    "batch_size": 32,
    "embed": 24,
    "hidden": 40,
}

PHRASES = {
    "refund": ["money back", "a refund please", "you charged twice", "return my payment"],
    "delivery": ["where is the parcel", "not arrived yet", "parcel is late", "track my order"],
    "account": ["cannot log in", "forgot the password", "change my email", "account is locked"],
    "product": ["it is broken", "the screen is dark", "does not turn on", "a part is missing"],
    "praise": ["thank you so much", "great service", "works very well", "i am happy"],
}
AROUND = "hello hi dear team i we today again please just still want to say that my the since"


def request(rng):
    intent = rng.randrange(len(PHRASES))
    said = rng.choices(AROUND.split(), k=rng.randint(1, 5))
    said += rng.choice(PHRASES[list(PHRASES)[intent]]).split()
    said += rng.choices(AROUND.split(), k=rng.randint(0, 5))
    if rng.random() < 0.3:
        said.pop(rng.randrange(len(said)))
    return said, intent


rng = random.Random(80 + seed)
requests = [request(rng) for _ in range(2000)]
train_requests, val_requests = requests[:1600], requests[1600:]
vocabulary = {"<pad>": 0}
for said, _ in train_requests:
    for word in said:
        vocabulary.setdefault(word, len(vocabulary))


def batches(some, size, shuffle=False):
    order = list(range(len(some)))
    if shuffle:
        rng.shuffle(order)
    for start in range(0, len(order), size):
        chosen = [some[i] for i in order[start : start + size]]
        rows = [torch.tensor([vocabulary[w] for w in said]) for said, _ in chosen]
        lengths = torch.tensor([len(row) for row in rows])
        labels = torch.tensor([intent for _, intent in chosen])
        yield pad_sequence(rows, batch_first=True), lengths, labels


class IntentGRU(nn.Module):
    def __init__(self, words, embed, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, embed, padding_idx=0)
        self.gru = nn.GRU(embed, hidden, batch_first=True)
        self.classifier = nn.Linear(hidden, classes)

    def forward(self, rows, lengths):
        packed = pack_padded_sequence(
            self.embedding(rows), lengths, batch_first=True, enforce_sorted=False
        )
        _, last = self.gru(packed)
        return self.classifier(last[-1])


model = IntentGRU(len(vocabulary), params["embed"], params["hidden"], len(PHRASES))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=params["lr"])

for epoch in range(params["epochs"]):
    model.train()
    train_loss = []
    for rows, lengths, labels in batches(train_requests, params["batch_size"], shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(rows, lengths), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        train_loss.append(loss.item())

    model.eval()
    val_loss, hits = 0.0, 0
    with torch.no_grad():
        for rows, lengths, labels in batches(val_requests, 100):
            logits = model(rows, lengths)
            val_loss += criterion(logits, labels).item() * len(labels)
            hits += (logits.argmax(1) == labels).sum().item()
    print(
        f"Epoch: {epoch + 1:02} | Train Loss: {sum(train_loss) / len(train_loss):.3f}"
        f" | Val. Loss: {val_loss / len(val_requests):.3f}"
        f" | Val. Acc: {100 * hits / len(val_requests):.2f}%"
    )
