"""Models to fine-tune, and augmentation of their examples.

Names are imported at their first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
