"""What can a layered transformer retrieve, and at what cost? So far: the calculus."""
