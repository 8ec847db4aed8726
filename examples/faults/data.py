"""What the programs of the gallery share: their two options, and small data, of which none is
downloaded.

All tensors are float32 (labels int64) and split into a training and a validation part: `x, y,
x_val, y_val`. Unless a function says otherwise, features are standardised by the training part.
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np
import torch
from sklearn import datasets
from sklearn.model_selection import train_test_split


def arguments(doc: str | None) -> tuple[bool, int]:
    """Reads `--healthy` and `--seed N`, seeds the generators, and returns both."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--healthy", action="store_true", help="the same training without the fault"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    options = parser.parse_args()
    random.seed(options.seed)
    np.random.seed(options.seed)
    torch.manual_seed(options.seed)
    return options.healthy, options.seed


def standardise(x: torch.Tensor, *others: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """All by the means and standard deviations of `x`; constant columns become 0."""
    mean, std = x.mean(0), x.std(0)
    std = torch.where(std > 0, std, torch.ones_like(std))
    return tuple((part - mean) / std for part in (x, *others))


def _split(x, y, seed: int, *, stratify: bool, raw: bool = False):
    parts = train_test_split(
        x, y, train_size=0.75, random_state=seed, stratify=y if stratify else None
    )
    x, x_val = (torch.tensor(part, dtype=torch.float32) for part in parts[:2])
    kind = torch.int64 if stratify else torch.float32
    y, y_val = (torch.tensor(part, dtype=kind) for part in parts[2:])
    if not raw:
        x, x_val = standardise(x, x_val)
    return x, y, x_val, y_val


def digits(seed: int, *, raw: bool = False):
    """1,797 handwritten digits as rows of 64 pixels (raw: 0 to 16), ten classes."""
    bunch = datasets.load_digits()
    x, y, x_val, y_val = _split(bunch.data, bunch.target, seed, stratify=True, raw=True)
    if not raw:
        mean, std = x.mean(), x.std()
        x, x_val = (x - mean) / std, (x_val - mean) / std
    return x, y, x_val, y_val


def images(seed: int, *, raw: bool = False):
    """The digits as images of shape (1, 8, 8)."""
    x, y, x_val, y_val = digits(seed, raw=raw)
    return x.view(-1, 1, 8, 8), y, x_val.view(-1, 1, 8, 8), y_val


def cancer(seed: int, *, raw: bool = False):
    """569 tumours with 30 measurements each, two classes."""
    bunch = datasets.load_breast_cancer()
    return _split(bunch.data, bunch.target, seed, stratify=True, raw=raw)


def wine(seed: int, *, raw: bool = False):
    """178 wines with 13 chemical measurements each (raw: 0.1 to 1,700), three classes."""
    bunch = datasets.load_wine()
    return _split(bunch.data, bunch.target, seed, stratify=True, raw=raw)


def diabetes(seed: int, *, raw_target: bool = False):
    """442 patients with 10 measurements each; how far the illness went (raw: 25 to 346)."""
    bunch = datasets.load_diabetes()
    x, y, x_val, y_val = _split(bunch.data, bunch.target, seed, stratify=False)
    if not raw_target:
        y, y_val = standardise(y, y_val)
    return x, y, x_val, y_val


HOUSE_COLUMNS = ("income", "age", "rooms", "people", "distance", "latitude")


def houses(seed: int, n: int = 2000, *, raw: bool = False, raw_target: bool = False):
    """Districts made up like those of California: six columns, the median price in dollars."""
    r = np.random.default_rng(1000 + seed)
    income = r.gamma(4.0, 0.95, n)  # 10,000 dollars
    age = r.uniform(1, 52, n)
    rooms = np.clip(r.normal(5.4, 1.2, n), 1, None)
    people = r.lognormal(7.1, 0.6, n)
    distance = r.gamma(2.0, 25.0, n)  # km to the sea
    latitude = r.uniform(32.5, 42, n)
    price = 45_000 * income + 900 * age - 1_100 * distance + 9_000 * (rooms - 5.4) * income / 4
    price = price + 90_000 + 25_000 * np.sin(latitude) + r.normal(0, 25_000, n)
    x = np.stack([income, age, rooms, people, distance, latitude], 1)
    x, y, x_val, y_val = _split(x, np.clip(price, 15_000, 500_001), seed, stratify=False, raw=raw)
    if not raw_target:
        y, y_val = standardise(y, y_val)
    return x, y, x_val, y_val


_WHO = ("the cat", "a dog", "my friend", "the old man", "a bird", "her sister", "the captain")
_DOES = ("sees", "likes", "follows", "finds", "paints", "calls", "waits for")
_WHERE = ("in the garden", "near the river", "at night", "after lunch", "on the roof", "by the sea")
_GOOD = ("wonderful", "lovely", "brilliant", "charming", "great", "moving")
_BAD = ("boring", "awful", "dull", "weak", "terrible", "clumsy")


def text(seed: int, sentences: int = 1500) -> tuple[torch.Tensor, str]:
    """Sentences by a small grammar as a row of character numbers; the alphabet."""
    r = random.Random(seed)
    written = [
        f"{r.choice(_WHO)} {r.choice(_DOES)} {r.choice(_WHO)} {r.choice(_WHERE)}. "
        for _ in range(sentences)
    ]
    joined = "".join(written)
    alphabet = "".join(sorted(set(joined)))
    number = {c: i for i, c in enumerate(alphabet)}
    return torch.tensor([number[c] for c in joined]), alphabet


def reviews(seed: int, n: int = 1200, length: int = 16):
    """Short reviews as word numbers (0 is padding, at the end) with label 1 for praise.

    Returns x (n, length), y and the size of the vocabulary. One in ten has a word
    of the other kind.
    """
    r = random.Random(2000 + seed)
    filler = [f"w{i}" for i in range(150)]
    words = ["<pad>", *_GOOD, *_BAD, *filler]
    number = {w: i for i, w in enumerate(words)}
    rows, labels = [], []
    for _ in range(n):
        good = r.random() < 0.5
        said = [r.choice(filler) for _ in range(r.randint(4, length - 4))]
        for _ in range(r.randint(1, 3)):
            said.insert(r.randrange(len(said)), r.choice(_GOOD if good else _BAD))
        if r.random() < 0.1:
            said.insert(r.randrange(len(said)), r.choice(_BAD if good else _GOOD))
        row = [number[w] for w in said[:length]]
        rows.append(row + [0] * (length - len(row)))
        labels.append(int(good))
    return torch.tensor(rows), torch.tensor(labels), len(words)


def waves(seed: int, n: int = 800, length: int = 40):
    """Noisy waves of three shapes (sine, saw-tooth, square): x (n, length, 1) and the shape."""
    g = torch.Generator().manual_seed(3000 + seed)
    y = torch.randint(0, 3, (n,), generator=g)
    phase = torch.rand(n, 1, generator=g) * 6.283
    speed = 0.25 + 0.35 * torch.rand(n, 1, generator=g)
    t = torch.arange(length) * speed + phase
    shapes = torch.stack([t.sin(), (t / 3.1416) % 2 - 1, t.sin().sign()])
    x = shapes[y, torch.arange(n)] + 0.15 * torch.randn(n, length, generator=g)
    return x.unsqueeze(-1), y


def batches(*tensors: torch.Tensor, size: int, steps: int, seed: int = 0):
    """`steps` batches of rows drawn without replacement, epoch after epoch."""
    g = torch.Generator().manual_seed(seed)
    n, given = len(tensors[0]), 0
    while True:
        for rows in torch.randperm(n, generator=g).split(size):
            if len(rows) < size and n >= size:
                continue
            if given == steps:
                return
            given += 1
            yield tuple(part[rows] for part in tensors)


def leave_group() -> None:
    """Ends this rank's process group, after a moment in which the interpreter is nobody's.

    With PyTorch 2.13 the thread of gloo asks for the interpreter when it lets go of a reduction. A
    training that ends within milliseconds of its last backward pass joins that thread while it has
    the interpreter itself, and both wait forever: in 14 of 72 runs, without traindbg, of what is
    now duplicate_shards_sampler_forgotten.py, two at a time on two processors.
    """
    time.sleep(0.05)
    torch.distributed.destroy_process_group()
