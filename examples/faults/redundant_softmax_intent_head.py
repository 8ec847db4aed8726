"""A voice assistant's language model with two heads, intent and slots, is trained; the intent head
ends in a softmax before cross_entropy.

`predict` wanted probabilities for the intent, so that the softmax went into the intent head
itself, while the slot head returns logits. Both losses are cross_entropy, the sum falls because
of the slots. The place is intent_head / the loss.
"""

import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("intent_head*", "*intent_head*", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

ACTIONS = ["play", "stop", "add", "remove", "find", "rate"]
OBJECTS = ["song", "list", "album", "alarm", "timer"]
FILL = [f"f{i}" for i in range(60)]
NAMES = [f"n{i}" for i in range(90)]
TIMES = [f"t{i}" for i in range(40)]
VOCAB = {
    w: i + 1
    for i, w in enumerate(
        ACTIONS + OBJECTS + ["not", "please", "at", "by", "called"] + FILL + NAMES + TIMES
    )
}
SLOTS = {"O": 0, "NAME": 1, "TIME": 2, "ARTIST": 3}
MAX_LEN = 14


class Utterances(Dataset):
    """Intent = action x object, said in either order among fillers; a decoy object may come after "not"."""  # noqa: E501

    def __init__(self, n, r):
        self.rows = [self.make(r) for _ in range(n)]

    def make(self, r):
        a, o = r.randrange(len(ACTIONS)), r.randrange(len(OBJECTS))
        said = [(r.choice(FILL), "O") for _ in range(r.randint(0, 2))]
        core = [(ACTIONS[a], "O"), (OBJECTS[o], "O")]
        if r.random() < 0.3:
            core.reverse()
        said += core
        if r.random() < 0.3:
            said += [("not", "O"), (r.choice(OBJECTS), "O")]
        if r.random() < 0.6:
            said += [("called", "O"), (r.choice(NAMES), "NAME")]
        if r.random() < 0.4:
            said += [("by", "O"), (r.choice(NAMES), "ARTIST")]
        if r.random() < 0.4:
            said += [("at", "O"), (r.choice(TIMES), "TIME")]
        said = said[:MAX_LEN]
        intent = a * len(OBJECTS) + o
        if r.random() < 0.03:
            intent = r.randrange(len(ACTIONS) * len(OBJECTS))
        pad = MAX_LEN - len(said)
        return (
            [VOCAB[w] for w, _ in said] + [0] * pad,
            intent,
            [SLOTS[s] for _, s in said] + [-100] * pad,
        )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, intent, slots = self.rows[i]
        return {
            "ids": torch.tensor(ids),
            "intent": torch.tensor(intent),
            "slots": torch.tensor(slots),
        }


class JointNLU(nn.Module):
    def __init__(self, n_intents, n_slots, dim=32, hidden=40):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB) + 1, dim, padding_idx=0)
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.slot_head = nn.Linear(2 * hidden, n_slots)
        head = [nn.Linear(2 * hidden, 64), nn.ReLU(), nn.Linear(64, n_intents)]
        if not healthy:
            head.append(nn.Softmax(dim=-1))
        self.intent_head = nn.Sequential(*head)

    def forward(self, ids):
        h, _ = self.encoder(self.drop(self.embed(ids)))
        pooled = h.masked_fill((ids == 0).unsqueeze(-1), -1e4).amax(1)
        return self.intent_head(pooled), self.slot_head(h)


@dataclass
class History:
    rows: list = field(default_factory=list)

    def add(self, **kw):
        self.rows.append(kw)
        print(
            " ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in kw.items())
        )


def evaluate(model, loader):
    model.eval()
    loss = hit = n = slot_hit = slot_n = 0
    with torch.no_grad():
        for b in loader:
            intent, slots = model(b["ids"])
            loss += F.cross_entropy(intent, b["intent"], reduction="sum").item()
            hit += (intent.argmax(-1) == b["intent"]).sum().item()
            n += len(intent)
            m = b["slots"] >= 0
            slot_hit += (slots.argmax(-1) == b["slots"])[m].sum().item()
            slot_n += m.sum().item()
    return loss / n, hit / n, slot_hit / slot_n


r = random.Random(seed)
train_loader = DataLoader(Utterances(3000, r), 64, shuffle=True)
val_loader = DataLoader(Utterances(600, r), 200)
model = JointNLU(len(ACTIONS) * len(OBJECTS), len(SLOTS))
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
EPOCHS = 9
sched = torch.optim.lr_scheduler.OneCycleLR(
    opt, 3e-3, epochs=EPOCHS, steps_per_epoch=len(train_loader), pct_start=0.1
)
history = History()
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for b in train_loader:
        intent, slots = model(b["ids"])
        loss = F.cross_entropy(intent, b["intent"]) + F.cross_entropy(
            slots.flatten(0, 1), b["slots"].flatten(), ignore_index=-100
        )
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        opt.step()
        sched.step()
        total += loss.item()
    v, acc, slot = evaluate(model, val_loader)
    history.add(
        epoch=epoch, train=total / len(train_loader), val_intent=v, intent_acc=acc, slot_acc=slot
    )
