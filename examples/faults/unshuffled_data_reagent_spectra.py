"""Names the reagent in a bottle from its Raman spectrum; the batches come in the shelf's order.

The spectra were measured shelf by shelf, so that the rows are sorted by reagent, and the loader is
not told to shuffle. Each batch holds one reagent only; the network learns to say its name and
forgets the others, and after each epoch it favours the last shelves.
The place is the loader.
The twin shuffles.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

REAGENTS = [
    "acetone",
    "ethanol",
    "toluene",
    "hexane",
    "pyridine",
    "acetonitrile",
    "DMSO",
    "chloroform",
]
args = {"batch_size": 32, "epochs": 8, "lr": 0.2, "per_reagent": 500, "channels": 80}


def measure(g):
    shift = torch.arange(args["channels"]).float()
    centre = args["channels"] * torch.rand(len(REAGENTS), 4, generator=g)
    height = 0.5 + torch.rand(len(REAGENTS), 4, generator=g)
    spectra, names = [], []
    for k in range(len(REAGENTS)):
        n = args["per_reagent"]
        drift = 1.5 * torch.randn(n, 1, 1, generator=g)
        bands = torch.exp(-0.5 * ((shift - centre[k].view(1, 4, 1) - drift) / 2.0) ** 2)
        signal = (height[k].view(1, 4, 1) * bands).sum(1)
        background = torch.rand(n, 1, generator=g) * torch.exp(-shift / 40)
        noise = 0.6 * torch.randn(n, args["channels"], generator=g)
        spectra.append(signal + background + noise)
        names.append(torch.full((n,), k))
    return torch.cat(spectra), torch.cat(names)


def evaluate(model, loader):
    model.eval()
    loss, right, n = 0.0, 0, 0
    with torch.inference_mode():
        for spectrum, name in loader:
            scores = model(spectrum)
            loss += nn.functional.cross_entropy(scores, name, reduction="sum").item()
            right += (scores.argmax(-1) == name).sum().item()
            n += len(name)
    return loss / n, right / n


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    spectra, names = measure(g)
    held_out = torch.zeros(len(names), dtype=torch.bool)
    held_out[::5] = True
    mean, std = spectra[~held_out].mean(0), spectra[~held_out].std(0)
    spectra = (spectra - mean) / std

    train_loader = DataLoader(
        TensorDataset(spectra[~held_out], names[~held_out]),
        batch_size=args["batch_size"],
        shuffle=healthy,
    )
    val_loader = DataLoader(TensorDataset(spectra[held_out], names[held_out]), batch_size=160)

    model = nn.Sequential(
        nn.Linear(args["channels"], 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, len(REAGENTS))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=args["lr"])
    for epoch in range(args["epochs"]):
        model.train()
        running = 0.0
        for spectrum, name in train_loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(spectrum), name)
            loss.backward()
            optimizer.step()
            running += loss.item() / len(train_loader)
        if epoch % 2 == 1:
            val_loss, accuracy = evaluate(model, val_loader)
            print(
                f"{epoch + 1:3d}/{args['epochs']} loss={running:.3f} "
                f"val_loss={val_loss:.3f} acc={accuracy:.3f}"
            )


if __name__ == "__main__":
    main()
