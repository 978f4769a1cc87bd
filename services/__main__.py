"""`python -m services` is the `ttmark` command."""

from services.cli.main import app

if __name__ == "__main__":
    app()
