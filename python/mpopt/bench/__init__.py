"""Benchmark of training steps over model families: `python -m mpopt.bench --help`."""
