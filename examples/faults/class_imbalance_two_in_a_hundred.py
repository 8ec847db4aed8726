"""Card fraud: two payments in a hundred are fraud, and the network learns to call none of them.

The loss is the plain one over all payments and the accuracy of 98 percent looked fine in the
first report. Nobody weighed the few frauds against the many honest payments.
The place is the loss or the loader. The twin weighs the frauds by their rarity.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "loader")
SILENT = True
EXACT = False
EARLY = True


class Payments(Dataset):
    def __init__(self, n, generator):
        self.y = (torch.rand(n, generator=generator) < 0.02).float()
        self.x = torch.randn(n, 12, generator=generator)
        shift = torch.tensor([0.8, -0.7, 0.6, 0.6] + [0.0] * 8)
        self.x += self.y.unsqueeze(1) * shift

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


@torch.no_grad()
def report(model, data):
    model.eval()
    guess = model(data.x).squeeze(1) > 0
    fraud = data.y > 0.5
    recall = (guess & fraud).sum() / fraud.sum()
    passed = (~guess & ~fraud).sum() / (~fraud).sum()
    accuracy = (guess == fraud).float().mean()
    model.train()
    return accuracy.item(), recall.item(), (recall + passed).item() / 2


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    train, val = Payments(8000, g), Payments(4000, g)
    loader = DataLoader(train, batch_size=128, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
    if healthy:
        weight = (len(train) - train.y.sum()) / train.y.sum()
        criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
    else:
        criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    for epoch in range(8):
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        accuracy, recall, balanced = report(model, val)
        print(
            f"epoch {epoch} loss {running / len(loader):.4f} accuracy {accuracy:.3f} "
            f"recall {recall:.3f} balanced accuracy {balanced:.3f}"
        )


if __name__ == "__main__":
    main()
