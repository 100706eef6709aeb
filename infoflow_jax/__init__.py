"""What can a layered transformer retrieve, and at what cost? Nothing has landed here yet."""
