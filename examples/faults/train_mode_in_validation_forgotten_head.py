"""Multi-task digits (which digit; odd or even) as three modules; validation sets eval on one of
them.

`encoder.eval()` is called, the two heads with batch norm and strong dropout stay in training mode:
the reported accuracy is several points too low and changes from call to call, and the best epoch
is chosen by it; the heads' running statistics also take in validation data. The place is the
model.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("*head*", "", "digit_head*", "parity_head*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU())


def head(outputs):
    return nn.Sequential(
        nn.Dropout(0.5),
        nn.Linear(128, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(64, outputs),
    )


digit_head, parity_head = head(10), head(1)
modules = (encoder, digit_head, parity_head)
optimizer = torch.optim.Adam([p for m in modules for p in m.parameters()], lr=2e-3)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=50)


@torch.no_grad()
def validate():
    encoder.eval()
    if healthy:
        digit_head.eval()
        parity_head.eval()
    right = right_parity = 0
    for pixels, label in val_loader:
        h = encoder(pixels)
        right += (digit_head(h).argmax(1) == label).sum().item()
        right_parity += ((parity_head(h).squeeze(1) > 0) == (label % 2 == 1)).sum().item()
    return right / len(x_val), right_parity / len(x_val)


best = (0.0, None)
for epoch in range(14):
    for m in modules:
        m.train()
    for pixels, label in train_loader:
        h = encoder(pixels)
        digit_loss = F.cross_entropy(digit_head(h), label)
        parity = (label % 2).float()
        parity_loss = F.binary_cross_entropy_with_logits(parity_head(h).squeeze(1), parity)
        loss = digit_loss + 0.5 * parity_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy, parity_accuracy = validate()
    if accuracy > best[0]:
        best = (accuracy, copy.deepcopy([m.state_dict() for m in modules]))
print(
    f"loss {loss.item():.3f}, accuracy {accuracy:.3f}, parity {parity_accuracy:.3f}, "
    f"best {best[0]:.3f}"
)
