"""The quick model: a corpus that is on every machine, its tokenizer, and one short training run."""
