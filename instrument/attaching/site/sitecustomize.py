"""Runs at the start of every Python below ``python -m instrument attach``, and watches for the modules to wrap in.

Afterwards the program finds everything as without it: this folder is off ``sys.path``, and the ``sitecustomize`` that
Python would have imported, if there is one, has run. Most Pythons that a server starts never import such a module, so
nothing is imported here before one of them is.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

ALIAS = "_traceview_instrument"
"""The package goes by this name here, so that a program's own module named ``instrument`` is not hidden."""

VARIABLE = "TRACEVIEW_ATTACH"
"""Environment variable that carries the wraps: one ``module:name=text`` a line."""

NEEDED_BY_HOOKING = ("numpy", "nvtx", "wrapt")
"""What hooking imports beside the standard library."""

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  pathlib costs every Python its import


class FirstImport:
    """Stands first in ``sys.meta_path`` until one of the modules is looked for, then has all of them hooked."""

    def __init__(self, specs: list[str]) -> None:
        self._specs = specs
        self._waiting = {spec.split(":")[0] for spec in specs}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Hook every module at the first import of one; from then on the hooks' own finder sees the imports."""
        if name not in self._waiting:
            return None
        self.hook()
        from importlib.util import find_spec

        return find_spec(name)

    def look_around(self) -> None:
        """Hook at once what no import would show: modules that are there already, and those that hooking imports.

        Those would be loaded twice, because hooking happens inside their own import.
        """
        needed = {*NEEDED_BY_HOOKING, *sys.stdlib_module_names}
        if any(name in sys.modules or name.split(".")[0] in needed for name in self._waiting):
            self.hook()

    def hook(self) -> None:
        """Have every function wrapped, at once or when its module is imported, and step aside."""
        self._waiting = set()
        try:
            load("attaching.runtime").register(self._specs)
        except ImportError as error:
            tell(f"nothing is named, {error.name} is missing: {sys.executable} -m pip install {error.name}")
        except Exception as error:
            tell(f"nothing is named: {error!r}")
        sys.meta_path.remove(self)


def load(module: str) -> ModuleType:
    """Return a module of ``instrument``, which this file lies in, whether or not that package can be imported.

    Raises ImportError where its file is gone.
    """
    from importlib.util import module_from_spec, spec_from_file_location

    if ALIAS not in sys.modules:
        folder = os.path.dirname(os.path.dirname(HERE))  # noqa: PTH120
        init = os.path.join(folder, "__init__.py")  # noqa: PTH118
        spec = spec_from_file_location(ALIAS, init, submodule_search_locations=[folder])
        if spec is None or spec.loader is None:
            raise ImportError(f"{init} cannot be loaded")
        package = module_from_spec(spec)
        sys.modules[ALIAS] = package
        spec.loader.exec_module(package)
    return import_module(f"{ALIAS}.{module}")


def watch() -> None:
    """Wait for the modules that the environment names."""
    specs = [line for line in os.environ.get(VARIABLE, "").splitlines() if line]
    if not specs:
        return
    if sys.version_info < (3, 10):  # noqa: UP036  any Python may be started below attach
        tell("this Python is older than 3.10, so it runs without ranges")
        return
    first_import = FirstImport(specs)
    sys.meta_path.insert(0, first_import)
    first_import.look_around()


def run_hidden() -> None:
    """Run the sitecustomize that this one hides."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != HERE]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    hidden = module_from_spec(spec)
    sys.modules["sitecustomize"] = hidden
    spec.loader.exec_module(hidden)


def tell(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"traceview attach: {message} [process {os.getpid()}]\n")


if __name__ == "sitecustomize":
    watch()
    run_hidden()
