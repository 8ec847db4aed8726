"""A GRU reads handwritten digits row by row; softmax is applied twice.

The model ends in a softmax and is trained with CrossEntropyLoss, which has its own. The loss
can't fall below 1.46 and the gradients are weak, so the learning is slow. The place is the
model's last layer (the loss).
"""

import torch
from data import arguments, batches, digits
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("softmax", "loss", "head")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

STEPS = 700


class RowReader(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(8, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, 10)
        self.softmax = nn.Identity() if healthy else nn.Softmax(dim=1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.softmax(self.head(states.mean(1)))


x_train, y_train, x_val, y_val = digits(seed)
x_train, x_val = x_train.view(-1, 8, 8), x_val.view(-1, 8, 8)
model = RowReader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
schedule = CosineAnnealingLR(optimizer, STEPS)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in enumerate(batches(x_train, y_train, size=48, steps=STEPS, seed=seed), 1):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 70 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val, right = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
        print(f"step {step} loss {loss.item():.4f} val {val.item():.4f} accuracy {right:.3f}")
