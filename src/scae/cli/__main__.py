"""`python -m scae.cli`, the command without an installed script."""

import sys

from scae.cli import main

sys.exit(main())
