"""Parts of speech with a BiLSTM; the log-softmax went missing when the model was exported.

The model used to end in `log_softmax`, to go with `NLLLoss`. For the export the last line was
removed ("the app takes the argmax anyway"), the loss was not changed. Now the loss is just minus
the right tag's raw score: it falls without end below zero, and nothing holds the other scores
down. The place is the loss. The twin's model still ends in `log_softmax`.
"""

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "out")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
TAGS = ["DET", "ADJ", "NOUN", "VERB", "ADV", "PREP"]
FOLLOWS = torch.tensor(
    [
        [0, 4, 6, 0, 0, 0],
        [0, 2, 8, 0, 0, 0],
        [0, 0, 1, 6, 1, 2],
        [4, 1, 1, 0, 2, 2],
        [2, 2, 0, 2, 1, 3],
        [7, 1, 2, 0, 0, 0.0],
    ]
)


class Sentences(Dataset):
    """Tags by a chain; 40 words a tag, of which a third are also words of the next tag."""

    def __init__(self, n, g):
        self.pairs = []
        for _ in range(n):
            tags = [0]
            for _ in range(int(torch.randint(4, 12, (1,), generator=g))):
                tags.append(int(torch.multinomial(FOLLOWS[tags[-1]], 1, generator=g)))
            tags = torch.tensor(tags)
            word = torch.randint(0, 40, (len(tags),), generator=g)
            words = (1 + 27 * tags + word) % 163 + (1 + 27 * tags + word >= 163).long()
            self.pairs.append((words, tags))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


def collate(pairs):
    words, tags = zip(*pairs, strict=False)
    return pad_sequence(words, batch_first=True), pad_sequence(
        tags, batch_first=True, padding_value=-100
    )


class Tagger(nn.Module):
    def __init__(self, words=164, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(2 * width, len(TAGS))

    def forward(self, words):
        states, _ = self.lstm(self.drop(self.embed(words)))
        scores = self.out(states)
        return scores.log_softmax(-1) if healthy else scores


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    right = n = loss = 0
    for words, tags in loader:
        said = model(words)
        loss += criterion(said.flatten(0, 1), tags.flatten()).item() / len(loader)
        known = tags >= 0
        right += (said.argmax(-1) == tags)[known].sum().item()
        n += known.sum().item()
    return loss, right / n


g = torch.Generator().manual_seed(seed)
train = DataLoader(Sentences(1600, g), batch_size=32, shuffle=True, collate_fn=collate)
val = DataLoader(Sentences(300, g), batch_size=150, collate_fn=collate)
model, criterion = Tagger(), nn.NLLLoss(ignore_index=-100)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    model.train()
    for words, tags in train:
        optimizer.zero_grad()
        loss = criterion(model(words).flatten(0, 1), tags.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    val_loss, accuracy = evaluate(model, val, criterion)
    print(f"epoch {epoch} train {loss.item():.3f} val {val_loss:.3f} tags right {accuracy:.3f}")
