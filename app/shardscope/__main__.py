"""`python -m shardscope`."""

import sys

from shardscope.app.main import main

if __name__ == "__main__":
    sys.exit(main())
