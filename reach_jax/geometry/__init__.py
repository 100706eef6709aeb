"""What the embeddings of a model look like: support, box, cone."""
