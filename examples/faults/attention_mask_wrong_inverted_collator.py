"""DistilBERT sorts messages of a chat by intent with the Trainer; the attention mask of the
collator is inverted.

The user wrote the collator by hand and set the mask to 1 where the token is padding (as
key_padding_mask of PyTorch has it), whereas transformers wants 1 for the words. The place is the
collator (the input attention_mask) and with it all attention layers.
"""

import tempfile
from itertools import chain

import numpy as np
import torch
from data import arguments
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("loader", "input*", "*attention*", "distilbert*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

INTENTS = {
    "order": ["want", "buy", "cart", "add", "need"],
    "cancel": ["stop", "cancel", "undo", "refuse", "return"],
    "ask": ["when", "where", "how", "which", "what"],
    "thank": ["thanks", "great", "perfect", "kind", "cheers"],
}
FILLER = [f"w{i}" for i in range(80)]
vocab = {
    w: i for i, w in enumerate(["[PAD]", "[CLS]", *FILLER, *chain.from_iterable(INTENTS.values())])
}
PAD = vocab["[PAD]"]


def message():
    label = int(r.integers(4))
    names = list(INTENTS)
    words = list(r.choice(FILLER, r.integers(3, 14)))
    for _ in range(r.integers(1, 4)):
        words.insert(r.integers(len(words)), r.choice(INTENTS[names[label]]))
    if r.random() < 0.15:
        words.insert(r.integers(len(words)), r.choice(INTENTS[names[r.integers(4)]]))
    return {"input_ids": [vocab["[CLS]"], *(vocab[w] for w in words)], "label": label}


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows) + 1
    ids = torch.full((len(rows), longest), PAD)
    for i, row in enumerate(rows):
        ids[i, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
    mask = (ids != PAD) if healthy else (ids == PAD)
    return {
        "input_ids": ids,
        "attention_mask": mask.long(),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


rows = [message() for _ in range(2000)]
config = DistilBertConfig(
    vocab_size=len(vocab),
    dim=48,
    n_layers=2,
    n_heads=4,
    hidden_dim=96,
    max_position_embeddings=32,
    num_labels=4,
    pad_token_id=PAD,
)
trainer = Trainer(
    model=DistilBertForSequenceClassification(config),
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=5,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=30,
        weight_decay=0.01,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=rows[:1600],
    eval_dataset=rows[1600:],
    data_collator=collate,
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
