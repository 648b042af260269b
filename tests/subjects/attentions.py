"""The attentions that there are."""

import inspect

from tfeff import layers
from tfeff.layers.attention import Attention


def attention_classes() -> list[type]:
    """Those of `tfeff.layers`; their first argument is a number of heads or parts."""
    public = (getattr(layers, name) for name in layers.__all__)
    return [x for x in public if inspect.isclass(x) and issubclass(x, Attention)]
