"""A small GPT-2 learns to answer sums with trl's SFTTrainer on prompt and completion.

The loss is taken on the completion only (the default of trl for such data), so most labels are
-100 and the reported loss is that of few tokens. It is sound.
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

ODD = "most labels are -100, as only completions count in the loss"

_, seed = arguments(__doc__)
r = np.random.default_rng(seed)

NAMES = ["ann", "ben", "cleo", "dan", "eve"]
THINGS = ["apples", "pears", "coins", "books"]
tokens = [
    "<pad>",
    "<eos>",
    "<unk>",
    *NAMES,
    *THINGS,
    *["has", "gives", "away", "gets", "now", "?", "."],
    *map(str, range(20)),
]
core = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
)


def sample():
    name, thing = r.choice(NAMES), r.choice(THINGS)
    have = int(r.integers(1, 10))
    if r.random() < 0.5:
        other = int(r.integers(1, 10))
        return (
            f"{name} has {have} {thing} . {name} gets {other} {thing} . now ?",
            f" {have + other} {thing}",
        )
    other = int(r.integers(0, have + 1))
    return (
        f"{name} has {have} {thing} . {name} gives away {other} {thing} . now ?",
        f" {have - other} {thing}",
    )


rows = [sample() for _ in range(3200)]
data = Dataset.from_dict({"prompt": [p for p, _ in rows], "completion": [c for _, c in rows]})
parts = data.train_test_split(test_size=300, seed=seed)

model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(tokens),
        n_positions=32,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
)
trainer = SFTTrainer(
    model=model,
    args=SFTConfig(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=8,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=4e-3,
        lr_scheduler_type="cosine",
        warmup_steps=40,
        max_length=32,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        seed=seed,
    ),
    train_dataset=parts["train"],
    eval_dataset=parts["test"],
    processing_class=tokenizer,
)
trainer.train()
print({k: round(v, 3) for k, v in trainer.evaluate().items() if k.startswith("eval_")})
