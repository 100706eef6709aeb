"""Soft prompts that make a frozen model emit a given text, and the proof that they do."""
