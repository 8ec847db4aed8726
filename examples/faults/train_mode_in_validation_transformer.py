"""validate() has torch.inference_mode() and forgets model.eval(); the encoder has dropout of 0.3.

Validation is noisy and too bad (silent). The place is the loop.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False


class SeriesTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.3, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.classify = nn.Linear(32, 3)

    def forward(self, x):
        x = self.project(x.view(x.shape[0], -1, 4))
        return self.classify(self.encoder(x).mean(1))


class Experiment:
    def __init__(self, model, loaders, call_eval):
        self.model = model
        self.train_loader, self.val_loader = loaders
        self.call_eval = call_eval
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def train(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            self.loss(self.model(x), y).backward()
            self.optimizer.step()

    def validate(self):
        if self.call_eval:
            self.model.eval()
        with torch.inference_mode():
            return sum(self.loss(self.model(x), y).item() for x, y in self.val_loader)


healthy, seed = arguments(__doc__)
dataset = TensorDataset(*waves(seed))
train_set, val_set = random_split(dataset, [650, 150])
loaders = (DataLoader(train_set, 32, shuffle=True), DataLoader(val_set, 50))
experiment = Experiment(SeriesTransformer(), loaders, call_eval=healthy)
for epoch in range(8):
    experiment.train()
    print(f"epoch {epoch}: validation {experiment.validate() / 3:.3f}")
