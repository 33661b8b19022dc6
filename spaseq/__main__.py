"""``python -m spaseq``: the command line, where its script is on no path."""

from spaseq.cli import main

if __name__ == "__main__":
    main()
