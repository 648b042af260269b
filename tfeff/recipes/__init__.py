"""The papers' runs, from settings to a served model.

Each is a dataclass of settings, which are the flags of the command `tfeff`, and a
function that runs it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
