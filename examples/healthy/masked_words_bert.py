"""BERT fills in masked words of weather reports, with DataCollatorForLanguageModeling and a loop
of its own.

Six in seven labels are -100, another mask is drawn each time, and the output matrix is tied to
the embedding. The validation masks are drawn anew too, so its loss trembles a little. It is
sound.
"""

import random

import torch
from data import arguments
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    get_linear_schedule_with_warmup,
)

ODD = "most labels are -100; new masks each time, in validation too"

_, seed = arguments(__doc__)
r = random.Random(seed)

SEASON = {
    "winter": ("snow", "frost", "sleet"),
    "spring": ("showers", "drizzle"),
    "summer": ("heat", "thunder"),
    "autumn": ("fog", "wind"),
}
DEGREES = {
    "winter": range(-9, 4),
    "spring": range(5, 14),
    "summer": range(18, 33),
    "autumn": range(4, 16),
}
PLACES = ["north", "south", "coast", "hills", "valley"]


def report():
    season = r.choice(list(SEASON))
    days = []
    for day in r.sample(["monday", "tuesday", "friday", "sunday"], 2):
        days.append(
            f"{day} brings {r.choice(SEASON[season])} to the {r.choice(PLACES)} at "
            f"{r.choice(DEGREES[season])} degrees"
        )
    return f"{season} report : {days[0]} , {days[1]} ."


texts = [report() for _ in range(2500)]
tokens = ["[PAD]", "[UNK]", "[MASK]", *sorted({w for t in texts for w in t.split()})]
core = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]"
)
rows = [{"input_ids": tokenizer(t)["input_ids"]} for t in texts]
collate = DataCollatorForLanguageModeling(tokenizer, mlm=True, mlm_probability=0.15)
loader = DataLoader(rows[:-300], batch_size=32, shuffle=True, collate_fn=collate)
val_loader = DataLoader(rows[-300:], batch_size=100, collate_fn=collate)

model = BertForMaskedLM(
    BertConfig(
        vocab_size=len(tokens),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.05,
    )
)
decay = [p for n, p in model.named_parameters() if p.ndim >= 2]
rest = [p for n, p in model.named_parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=3e-3
)
epochs = 7
schedule = get_linear_schedule_with_warmup(optimizer, 60, epochs * len(loader))

for epoch in range(epochs):
    model.train()
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        val = sum(model(**batch).loss.item() for batch in val_loader) / len(val_loader)
    print(f"epoch {epoch}: loss {loss.item():.3f}, validation loss {val:.3f}")
