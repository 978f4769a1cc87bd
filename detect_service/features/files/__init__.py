"""Text out of files; untrusted ones are read in processes that may die."""
