"""`python -m infinity_emb` is the command."""

import sys

from infinity_emb.cli import main

if __name__ == "__main__":
    sys.exit(main())
