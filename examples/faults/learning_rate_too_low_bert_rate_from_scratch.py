"""Review classifier (GRU over words, from scratch) with the 2e-5 of a BERT fine-tuning recipe.

The rate suits a pre-trained network; here nothing was pre-trained. After all epochs the loss has
come down from ln 2 by a few hundredths and the accuracy is hardly above guessing. The place is the
optimizer.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ("stopped_too_early",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LR = 2e-3 if healthy else 2e-5
EPOCHS, BATCH = 6, 32


class ReviewNet(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.word_emb = nn.Embedding(vocab, 24, padding_idx=0)
        self.gru = nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.classifier = nn.Linear(48, 2)

    def forward(self, tokens):
        lengths = (tokens != 0).sum(1)
        packed = pack_padded_sequence(
            self.word_emb(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        _, last = self.gru(packed)
        return self.classifier(self.drop(torch.cat([last[0], last[1]], 1)))


tokens, labels, vocab = reviews(seed, n=1600)
train = DataLoader(TensorDataset(tokens[:1300], labels[:1300]), batch_size=BATCH, shuffle=True)
valid = DataLoader(TensorDataset(tokens[1300:], labels[1300:]), batch_size=100)
model = ReviewNet(vocab)
no_decay = [p for n, p in model.named_parameters() if "bias" in n]
decay = [p for n, p in model.named_parameters() if "bias" not in n]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=LR
)
steps = EPOCHS * len(train)
warmup = steps // 10
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: s / warmup if s < warmup else (steps - s) / (steps - warmup)
)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(EPOCHS):
    model.train()
    losses = []
    for batch, target in train:
        loss = loss_fn(model(batch), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        hits = torch.cat([model(b).argmax(1) == t for b, t in valid])
print(f"loss {sum(losses) / len(losses):.3f}, validation accuracy {hits.float().mean():.3f}")
