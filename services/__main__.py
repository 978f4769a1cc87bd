"""`python -m ttmark.services` is the `ttmark` command."""

from ttmark.services.cli.main import app

if __name__ == "__main__":
    app()
