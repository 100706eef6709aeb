"""Transformers with explicit or trained weights, and witnesses of what a layer cannot do."""
