"""Scripts for the repository itself. Not imported by any package."""
