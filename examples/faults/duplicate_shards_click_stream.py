"""Click prediction from a streamed log; each worker of the loader reads the whole log again.

The log was too long for memory, so the Dataset became an IterableDataset, and later num_workers=2
was set for speed. Nobody divided the log among the workers: each of them yields every file, and
the trainer sees each batch twice in a row. A budget of steps thus covers half of the log.
The place is the loader.
The twin gives each worker its own share by get_worker_info().
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

KIND = "duplicate_shards"
ACCEPT = ("duplicated_rows", "repeated_batch")
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

ADS, SITES, FILES, LINES = 400, 60, 40, 400
STEPS = 230


class Truth:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(500 + seed)
        self.ad = torch.randn(ADS, 4, generator=g)
        self.site = torch.randn(SITES, 4, generator=g)
        self.bias = 0.7 * torch.randn(ADS, generator=g)

    def lines(self, number, n=LINES):
        g = torch.Generator().manual_seed(number)
        ad = torch.randint(0, ADS, (n,), generator=g)
        site = torch.randint(0, SITES, (n,), generator=g)
        logit = (self.ad[ad] * self.site[site]).sum(1) + self.bias[ad]
        return ad, site, (torch.rand(n, generator=g) < torch.sigmoid(logit)).float()


class ClickLog(IterableDataset):
    def __init__(self, truth, files, split):
        self.truth, self.files, self.split = truth, files, split

    def __iter__(self):
        files = self.files
        if self.split:
            worker = get_worker_info()
            files = files[worker.id :: worker.num_workers]
        for number in files:
            yield from zip(*self.truth.lines(number), strict=False)


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.ad = nn.Embedding(ADS, 8)
        self.site = nn.Embedding(SITES, 8)
        self.bias = nn.Embedding(ADS, 1)
        for table in (self.ad, self.site):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.zeros_(self.bias.weight)

    def forward(self, ad, site):
        return (self.ad(ad) * self.site(site)).sum(1) + self.bias(ad).squeeze(1)


def main():
    healthy, seed = arguments(__doc__)
    truth = Truth(seed)
    files = [10_000 * (seed + 1) + i for i in range(FILES)]
    loader = DataLoader(ClickLog(truth, files, healthy), batch_size=64, num_workers=2)
    ad_v, site_v, click_v = truth.lines(77 + seed, 4000)
    model = ClickModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss()
    mean = 0.0
    for step, (ad, site, click) in enumerate(loader, 1):
        loss = criterion(model(ad, site), click)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean += loss.item()
        if step % 46 == 0:
            with torch.no_grad():
                val = criterion(model(ad_v, site_v), click_v).item()
            print(f"{step * 64} lines: log loss {mean / 46:.4f}, val {val:.4f}")
            mean = 0.0
        if step == STEPS:
            break


if __name__ == "__main__":
    main()
