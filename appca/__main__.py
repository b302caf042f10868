"""Entry point of ``python -m appca``."""

import sys

from appca.cli import main

if __name__ == "__main__":
    sys.exit(main())
