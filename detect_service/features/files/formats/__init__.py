"""Which reader reads which file, and the readers of one module; `office` and `pdf` have folders."""
