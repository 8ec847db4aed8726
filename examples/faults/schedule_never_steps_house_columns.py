"""A BERT body over the columns of a table guesses the prices of houses; the scheduler is made and
never stepped.

The loop was written with get_linear_schedule_with_warmup, but `scheduler.step()` is forgotten, so
that the high first rate stays to the end. The place is the loop and the scheduler of the
optimizer.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertModel, get_linear_schedule_with_warmup

KIND = "schedule_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, n=2400)


class ColumnTransformer(nn.Module):
    """Each column is a token: its value times a vector of the column; the first output is read."""

    def __init__(self, columns, width=32):
        super().__init__()
        config = BertConfig(
            vocab_size=1,
            hidden_size=width,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=columns + 1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.value = nn.Parameter(torch.randn(columns, width) * 0.3)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.body = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(width, 1)

    def forward(self, rows):
        tokens = torch.cat(
            [self.first.expand(len(rows), -1, -1), rows.unsqueeze(-1) * self.value], 1
        )
        return self.head(self.body(inputs_embeds=tokens).last_hidden_state[:, 0]).squeeze(-1)


model = ColumnTransformer(x.shape[1])
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
epochs = 9
optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3, weight_decay=0.01)
scheduler = get_linear_schedule_with_warmup(
    optimizer, num_warmup_steps=0, num_training_steps=epochs * len(loader)
)
loss_of = nn.MSELoss()

for epoch in range(epochs):
    model.train()
    total = 0.0
    for rows, prices in loader:
        optimizer.zero_grad()
        loss = loss_of(model(rows), prices)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if healthy:
            scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        r2 = 1 - (model(x_val) - y_val).square().mean() / y_val.var()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}, validation R2 {r2:.4f}")
