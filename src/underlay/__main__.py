"""`python -m underlay` is the command `underlay`."""

from underlay.cli.main import run

if __name__ == "__main__":
    run()
