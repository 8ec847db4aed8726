"""Hours a lorry needs for a tour: a join has multiplied the tours of one depot by sixty.

Tours were merged with a table of depots in which the newest depot, Kiel, stands once per gate
instead of once. Each of its tours therefore appears sixty times, and nine rows in ten of the
training table are the same few tours. The place is the input (the table).
The twin drops the repeated rows of the depot table before the merge.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

DEPOTS = ["Bremen", "Kassel", "Kiel", "Ulm", "Jena"]
COLUMNS = ["km", "stops", "load", "start", "docks", "altitude"]


def tours(n, rng):
    depot = rng.choice(len(DEPOTS), n, p=[0.26, 0.25, 0.05, 0.22, 0.22])
    km = rng.gamma(4, 45, n) * np.where(depot == 2, 0.4, 1.0)
    stops = rng.integers(2, 18, n)
    load = rng.uniform(2, 24, n)
    start = rng.uniform(4, 11, n)
    rush = np.exp(-((start - 7.5) ** 2))
    hours = km / (68 - 0.5 * load - 14 * rush) + stops * (0.12 + 0.012 * load)
    frame = pd.DataFrame({"km": km, "stops": stops, "load": load, "start": start})
    frame["depot"] = [DEPOTS[d] for d in depot]
    frame["hours"] = hours + rng.normal(0, 0.35, n)
    return frame


def depot_table():
    base = pd.DataFrame(
        {"depot": DEPOTS, "docks": [12, 8, 3, 9, 6], "altitude": [11, 167, 5, 478, 143]}
    )
    gates = pd.concat([base[base.depot == "Kiel"]] * 59)
    return pd.concat([base, gates], ignore_index=True)


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed + 300)
    depots = depot_table()
    if healthy:
        depots = depots.drop_duplicates()
    train = tours(500, rng).merge(depots, on="depot")
    test = tours(500, rng).merge(depots.drop_duplicates(), on="depot")
    distinct = train.drop_duplicates()
    mean, std = distinct[COLUMNS].mean(), distinct[COLUMNS].std()

    def tensors(frame):
        x = ((frame[COLUMNS] - mean) / std).to_numpy(np.float32)
        return torch.from_numpy(x), torch.tensor((frame.hours - 5) / 2, dtype=torch.float32)

    loader = DataLoader(TensorDataset(*tensors(train)), batch_size=32, shuffle=True)
    x_test, y_test = tensors(test)
    net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-4)
    step, losses = 0, []
    while step < 500:
        for x, y in loader:
            loss = nn.functional.huber_loss(net(x)[:, 0], y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            step += 1
            if step % 100 == 0:
                with torch.no_grad():
                    wrong = (net(x_test)[:, 0] - y_test).abs().mean() * 2
                print(f"{step:4d} loss {np.mean(losses[-50:]):.4f}  test error {wrong:.3f} h")
            if step == 500:
                break


main()
