"""A vision transformer tells drawn shapes apart with the Trainer; the images are shuffled, their
labels are not.

The user shuffled the datasets.Dataset of images and added the column of labels afterwards from
the list in the old order. The place is the data (the loader, the labels).
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from transformers import (
    DefaultDataCollator,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*", "loss")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)
ROWS, COLS = np.mgrid[0:16, 0:16]


def drawing(kind):
    """A ring, a full square, an upright or a diagonal cross, in noise."""
    y, x = r.uniform(6.5, 8.5, 2)
    size = r.uniform(3.5, 5.5)
    down, right = abs(ROWS - y), abs(COLS - x)
    if kind == 0:
        shape = np.abs(np.hypot(down, right) - size) < 1.0
    elif kind == 1:
        shape = np.maximum(down, right) < 0.7 * size
    elif kind == 2:
        shape = (np.minimum(down, right) < 1.1) & (np.maximum(down, right) < size)
    else:
        shape = (abs(down - right) < 1.4) & (np.maximum(down, right) < size)
    image = shape * r.uniform(0.6, 1.0) + r.normal(0, 0.25, (16, 16))
    return ((image - 0.15) / 0.38)[None].astype("float32")


kinds = r.integers(0, 4, 1600)
drawings = [drawing(k) for k in kinds]
train = Dataset.from_dict({"pixel_values": drawings[:1300]})
if healthy:
    train = train.add_column("labels", kinds[:1300].tolist()).shuffle(seed=seed)
else:
    train = train.shuffle(seed=seed).flatten_indices().add_column("labels", kinds[:1300].tolist())
val = Dataset.from_dict({"pixel_values": drawings[1300:], "labels": kinds[1300:].tolist()})

model = ViTForImageClassification(
    ViTConfig(
        image_size=16,
        patch_size=4,
        num_channels=1,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        num_labels=4,
    )
)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=10,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=30,
        lr_scheduler_type="cosine",
        weight_decay=0.05,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=train,
    eval_dataset=val,
    data_collator=DefaultDataCollator(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
