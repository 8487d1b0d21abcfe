"""Finds the rewrite that moved a result: `mpopt bisect`."""
