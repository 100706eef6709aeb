"""Targets as data: inputs, what a network is to give for them, and how far it is from that."""
