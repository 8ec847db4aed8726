"""A recurrent cell that must remember, with its state cut off the graph at every time step.

The person took repackage_hidden, which language models call between chunks of text, and called it
inside the loop over time steps. No gradient reaches what the cell should have kept, and it never
learns to remember. The place is the loop over time in Memory.forward (the cell's state).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("model", "cell*", "loop", "embed*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIGNALS, LENGTH = 8, 9


def questions(count):
    """Rows of signals; the last place asks, by a number 1 to 4, for one of the first four."""
    signals = torch.randint(0, SIGNALS, (count, LENGTH - 1))
    asked = torch.randint(0, 4, (count, 1))
    return torch.cat([signals, SIGNALS + asked], dim=1), signals.gather(1, asked).squeeze(1)


def repackage_hidden(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(repackage_hidden(part) for part in state)


class Memory(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(SIGNALS + 4, 32)
        self.places = nn.Parameter(0.5 * torch.randn(LENGTH, 32))
        self.cell = nn.LSTMCell(32, width)
        self.answer = nn.Linear(width, SIGNALS)

    def start(self, batch):
        return torch.zeros(batch, self.width), torch.zeros(batch, self.width)

    def forward(self, signals):
        state = self.start(len(signals))
        for step in range(LENGTH):
            if not healthy:
                state = repackage_hidden(state)
            state = self.cell(self.embed(signals[:, step]) + self.places[step], state)
        return self.answer(state[0])


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        scores = model(x)
    model.train()
    return F.cross_entropy(scores, y).item(), (scores.argmax(1) == y).float().mean().item()


def main():
    x, y = questions(8000)
    x_val, y_val = questions(800)
    model = Memory()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    for epoch in range(11):
        losses = []
        for rows in torch.randperm(len(x)).split(100):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        val_loss, accuracy = validate(model, x_val, y_val)
        plateau.step(val_loss)
        print(
            f"epoch {epoch} train {sum(losses) / len(losses):.3f} "
            f"valid {val_loss:.3f} right answers {accuracy:.3f}"
        )


main()
