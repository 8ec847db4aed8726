"""A small transformer classifies reviews, from scratch, with AdamW at 1e-6.

The rate belongs to the fine-tuning of a large pretrained model. From random weights it moves
nothing in three hundred steps. The place is the optimizer. The twin uses 1e-3.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
args = {"lr": 1e-3 if healthy else 1e-6, "epochs": 8, "batch_size": 32, "weight_decay": 0.01}
x, y, vocab = reviews(seed, n=1500)
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), args["batch_size"], shuffle=True)
val_x, val_y = x[1200:], y[1200:]


class TransformerClassifier(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(
            dim, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classifier = nn.Linear(dim, 2)

    def forward(self, tokens):
        padding = tokens == 0
        h = self.encoder(self.embed(tokens), src_key_padding_mask=padding)
        h = h.masked_fill(padding.unsqueeze(-1), 0).sum(1) / (~padding).sum(1, keepdim=True)
        return self.classifier(h)


model = TransformerClassifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=args["lr"], weight_decay=args["weight_decay"])
loss_fn = nn.CrossEntropyLoss()
for epoch in range(args["epochs"]):
    model.train()
    total = 0.0
    for tokens, labels in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(tokens), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(val_x)
    print(
        f"epoch {epoch + 1} train {total / len(train_loader):.4f} "
        f"val {loss_fn(logits, val_y).item():.4f} "
        f"acc {(logits.argmax(1) == val_y).float().mean().item():.3f}"
    )
