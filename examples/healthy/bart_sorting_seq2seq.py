"""A small BART learns to write the letters of a word in alphabetical order, with Seq2SeqTrainer
and its collator.

The targets are padded with -100 and the decoder sees the shifted target; sequences end at
different places. It is sound.
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

ODD = "labels padded with -100; the decoder is fed the shifted target"

_, seed = arguments(__doc__)
r = np.random.default_rng(seed)
LETTERS = "abcdefghijkl"

vocab = {t: i for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>", *LETTERS])}
core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.Split("", "isolated")
core.post_processor = processors.TemplateProcessing(
    single="<s> $A </s>", special_tokens=[("<s>", vocab["<s>"]), ("</s>", vocab["</s>"])]
)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
)

raw = ["".join(r.choice(list(LETTERS), r.integers(3, 8))) for _ in range(5000)]
raw = sorted(set(raw), key=lambda w: r.random())
pairs = Dataset.from_dict({"source": raw, "target": ["".join(sorted(w)) for w in raw]})


def encode(rows):
    out = tokenizer(rows["source"], return_token_type_ids=False)
    out["labels"] = tokenizer(text_target=rows["target"])["input_ids"]
    return out


parts = pairs.map(encode, batched=True, remove_columns=pairs.column_names).train_test_split(
    test_size=400, seed=seed
)
config = BartConfig(
    vocab_size=len(vocab),
    d_model=48,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=96,
    decoder_ffn_dim=96,
    max_position_embeddings=16,
    dropout=0.05,
    bos_token_id=0,
    pad_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
    forced_eos_token_id=2,
)
model = BartForConditionalGeneration(config)


def metrics(p):
    kept = p.label_ids != -100
    right = (p.predictions == p.label_ids) | ~kept
    return {"tokens": float(right[kept].mean()), "words": float(right.all(1).mean())}


trainer = Seq2SeqTrainer(
    model=model,
    args=Seq2SeqTrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=6,
        per_device_train_batch_size=48,
        per_device_eval_batch_size=100,
        learning_rate=3e-3,
        lr_scheduler_type="cosine",
        warmup_steps=60,
        weight_decay=0.01,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=parts["train"],
    eval_dataset=parts["test"],
    data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
    compute_metrics=metrics,
    preprocess_logits_for_metrics=lambda logits, labels: (
        logits[0] if isinstance(logits, tuple) else logits
    ).argmax(-1),
)
trainer.train()
print(trainer.evaluate())
