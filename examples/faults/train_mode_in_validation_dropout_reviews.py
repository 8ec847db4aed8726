"""A bag-of-embeddings classifier of reviews with dropout; validation forgets model.eval().

The validation has its no_grad() but not its eval(): half of the units are dropped while the
accuracy is measured, and it comes out several points too low and different each time. The place is
the loop's validation. The twin calls eval() there.
"""

import torch
from data import arguments, reviews
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed, n=1600)
x, x_val, y, y_val = x[:1200], x[1200:], y[:1200].float(), y[1200:].float()


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(words, 32, padding_idx=0, mode="mean")
        self.hidden = nn.Linear(32, 32)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(32, 1)

    def forward(self, tokens):
        h = self.drop(self.embed(tokens))
        h = self.drop(torch.relu(self.hidden(h)))
        return self.out(h).squeeze(1)


model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
bce = nn.BCEWithLogitsLoss()


def validate():
    if healthy:
        model.eval()
    with torch.no_grad():
        out = model(x_val)
    return bce(out, y_val).item(), ((out > 0) == y_val).float().mean().item()


for epoch in range(16):
    model.train()
    for rows in torch.randperm(len(x)).split(50):
        optimizer.zero_grad()
        loss = bce(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    val_loss, accuracy = validate()
    print(f"epoch {epoch + 1}: last {loss.item():.3f}  val {val_loss:.3f}  accuracy {accuracy:.3f}")

model.eval()
with torch.no_grad():
    out = model(x_val)
print(
    f"reported {val_loss:.3f} / {accuracy:.3f}; the model as it would be used: "
    f"{bce(out, y_val).item():.3f} / {((out > 0) == y_val).float().mean().item():.3f}"
)
