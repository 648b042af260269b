"""The modules of the library."""

import importlib
import pkgutil

import tfeff


def import_all() -> None:
    """Imports every module; those that need Beam only where it is installed."""
    for module in pkgutil.walk_packages(tfeff.__path__, "tfeff."):
        if "__main__" in module.name:
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name == "apache_beam", error
