"""Forest cover from terrain, five classes of very different size, trained by NLLLoss on bare
logits.

The model used to end in LogSoftmax. When the export wanted logits, the layer was taken out of the
model and the criterion stayed: NLLLoss just pushes one output of each row up, the sooner the
commoner the class, without end. The loss turns negative. The place is the loss. The twin's
criterion is CrossEntropyLoss.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(7 + seed)
SHARE = torch.tensor([0.45, 0.3, 0.13, 0.07, 0.05])
N, COLUMNS = 4000, 10
cover = torch.multinomial(SHARE, N, replacement=True, generator=g)
centre = 1.1 * torch.randn(5, 2, COLUMNS, generator=g)  # each kind of forest has two habitats
habitat = torch.randint(2, (N,), generator=g)
terrain = centre[cover, habitat] + torch.randn(N, COLUMNS, generator=g)
terrain = (terrain - terrain[:3000].mean(0)) / terrain[:3000].std(0)
x, y, x_val, y_val = terrain[:3000], cover[:3000], terrain[3000:], cover[3000:]


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(COLUMNS, 64)
        self.fc2 = nn.Linear(64, 32)
        self.out = nn.Linear(32, 5)

    def forward(self, x):
        return self.out(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


model = CoverNet()
criterion = nn.CrossEntropyLoss() if healthy else nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)

for step, (inputs, target) in enumerate(batches(x, y, size=64, steps=450, seed=seed), 1):
    model.train()
    loss = criterion(model(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 45 == 0:
        model.eval()
        with torch.no_grad():
            said = model(x_val).argmax(1)
        recalls = [(said[y_val == c] == c).float().mean().item() for c in range(5)]
        print(
            f"step {step} loss {loss.item():.4f} "
            f"accuracy {(said == y_val).float().mean().item():.3f} "
            f"mean recall {sum(recalls) / 5:.3f}"
        )
