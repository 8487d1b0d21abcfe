"""The machine that a program runs on: its cost model, measured or looked up."""
