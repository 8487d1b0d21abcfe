"""What each rank does in test_distributed.py; a case runs on all ranks at once."""
