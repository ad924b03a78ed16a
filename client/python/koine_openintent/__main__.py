"""Runs a program of the OpenIntent SDK with channel messages:

python -m koine_openintent program.py [argument …]
"""

import runpy
import sys

from . import install


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    install()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


main()
