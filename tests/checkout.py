"""Puts the checkout before a script's own folder, in which ``tests/instrument`` hides the package of that name.

A script imports it before anything of this project.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
