"""`python -m compdiffuser`, and so `accelerate launch -m compdiffuser train …`."""

import sys

from compdiffuser.cli import main

sys.exit(main())
