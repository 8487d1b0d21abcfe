"""The machine that a program runs on: its cost model, measured or looked up."""

from .choice import auto_name, check, fingerprint, resolve

__all__ = ["auto_name", "check", "fingerprint", "resolve"]
