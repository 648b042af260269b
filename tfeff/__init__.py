"""Efficient Transformer encoders for TensorFlow and Keras.

Subpackages load when they are first used, so `import tfeff` costs nothing and
`tfeff.layers` and `tfeff.ops` need Keras alone. Keras and KerasHub load what tfeff
saved, whichever is imported first.

Example:

>>> import tfeff
>>> tfeff.layers.SelfAttention(num_heads=4).num_heads
4
"""

import lazy_loader

from tfeff.utils import registration as _registration

__version__ = "0.1.0"

__getattr__, _dir, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})


_registration.register()
