"""`python -m evaluation.bench`."""

from evaluation.bench.cli import app

if __name__ == "__main__":
    app()
