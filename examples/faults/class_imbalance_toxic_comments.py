"""A filter trained on comments of which 3 % are toxic; it lets nearly all of them pass.

The accuracy is 97 % after the first epoch already, which is the share of harmless comments; the
recall is close to 0 at the usual threshold. The place is the loader. The twin draws both classes
equally often.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("labels", "loader", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

args = {
    "vocabulary": 150,
    "length": 20,
    "dim": 8,
    "batch_size": 64,
    "lr": 3e-3,
    "weight_decay": 1e-2,
    "epochs": 4,
}


def comments(n, share, generator):
    """Word numbers and 1 for toxic. Rude words (the first 30) turn up in harmless talk as well."""
    toxic = torch.rand(n, generator=generator) < share
    words = torch.randint(30, args["vocabulary"], (n, args["length"]), generator=generator)
    rude = torch.randint(0, 30, (n, args["length"]), generator=generator)
    rate = torch.where(toxic, 0.27, 0.07).unsqueeze(1)
    swap = torch.rand(n, args["length"], generator=generator) < rate
    return torch.where(swap, rude, words), toxic.float()


class BagOfWords(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.words = nn.EmbeddingBag(vocabulary, dim, mode="mean")
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, tokens):
        return self.out(self.norm(self.words(tokens))).squeeze(-1)


def report(model, loader):
    model.eval()
    found = missed = alarms = quiet = 0
    with torch.no_grad():
        for tokens, label in loader:
            flagged = model(tokens).sigmoid() > 0.5
            toxic = label > 0.5
            found += (flagged & toxic).sum().item()
            missed += (~flagged & toxic).sum().item()
            alarms += (flagged & ~toxic).sum().item()
            quiet += (~flagged & ~toxic).sum().item()
    accuracy = (found + quiet) / (found + missed + alarms + quiet)
    recall, specificity = found / (found + missed), quiet / (quiet + alarms)
    return accuracy, recall, (recall + specificity) / 2


generator = torch.Generator().manual_seed(90 + seed)
tokens, toxic = comments(10000, 0.03, generator)
train_set = TensorDataset(tokens, toxic)
if healthy:
    weight = torch.where(toxic > 0.5, 0.5 / toxic.sum(), 0.5 / (1 - toxic).sum())
    sampler = WeightedRandomSampler(weight, num_samples=len(toxic))
    train_loader = DataLoader(train_set, batch_size=args["batch_size"], sampler=sampler)
else:
    train_loader = DataLoader(train_set, batch_size=args["batch_size"], shuffle=True)
valid_loader = DataLoader(TensorDataset(*comments(3000, 0.03, generator)), batch_size=500)

model = BagOfWords(args["vocabulary"], args["dim"])
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=args["lr"], weight_decay=args["weight_decay"])
step = 0
for epoch in range(args["epochs"]):
    model.train()
    running = 0.0
    for batch_tokens, batch_toxic in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(batch_tokens), batch_toxic)
        loss.backward()
        optimizer.step()
        step += 1
        running = 0.95 * running + 0.05 * loss.item() if step > 1 else loss.item()
    accuracy, recall, balanced = report(model, valid_loader)
    print(
        f"epoch {epoch} step {step}: loss {running:.3f} accuracy {accuracy:.3f} "
        f"recall {recall:.3f} balanced accuracy {balanced:.3f}"
    )
