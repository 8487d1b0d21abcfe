"""`tools/gpu-check.sh`: all that needs a GPU, in one run of at most eight minutes."""
