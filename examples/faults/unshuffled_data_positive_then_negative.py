"""Reviews read as all of pos/ and then all of neg/, batched by a BatchSampler over a
SequentialSampler.

The sampler pair was copied from the evaluation for the sake of fast slicing. Each batch has one
label only; the convolution over words swings to "praise" and back in every epoch, the training
loss looks wonderful in the middle of each half, and validation sits near chance. The place is the
loader.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
tokens, label, vocabulary = reviews(seed, n=2400)
test_tokens, test_label = tokens[2000:], label[2000:].float()
tokens, label = tokens[:2000], label[:2000]
positive, negative = tokens[label == 1], tokens[label == 0]
tokens = torch.cat([positive, negative])
label = torch.cat([torch.ones(len(positive)), torch.zeros(len(negative))])


class Kim(nn.Module):
    def __init__(self, width=24, filters=16):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(width, filters, k, padding=k // 2) for k in (1, 3))
        self.drop = nn.Dropout(0.5)
        self.verdict = nn.Linear(2 * filters, 1)

    def forward(self, tokens):
        h = self.words(tokens).transpose(1, 2)
        pooled = [torch.relu(conv(h)).amax(2) for conv in self.filters]
        return self.verdict(self.drop(torch.cat(pooled, 1))).flatten()


model = Kim()
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
sampler = BatchSampler(
    (RandomSampler if healthy else SequentialSampler)(range(len(label))),
    batch_size=12,
    drop_last=False,
)
for epoch in range(3):
    model.train()
    running = []
    for rows in sampler:
        loss = loss_fn(model(tokens[rows]), label[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(test_tokens)
        test_loss = loss_fn(out, test_label)
        accuracy = ((out > 0) == (test_label > 0)).float().mean()
print(
    f"epoch loss {sum(running) / len(running):.3f}, test loss {test_loss:.3f}, "
    f"accuracy {accuracy:.3f}"
)
