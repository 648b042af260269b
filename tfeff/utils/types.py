"""Names for what Keras has no types for: its packages tell type checkers nothing."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# A tensor of the backend or a symbolic one of Keras, or what becomes one: a NumPy array
# or nested lists of numbers.
Tensor: TypeAlias = Any
# Sizes of axes: integers, integer tensors, or `None` for any size.
Shape: TypeAlias = Sequence[Any]
# A dtype, a dtype policy, or the name of one.
DType: TypeAlias = Any
# The name, the configuration, or the function or object itself.
Activation: TypeAlias = str | dict[str, Any] | Callable[..., Any]
Initializer: TypeAlias = str | dict[str, Any] | Callable[..., Any]
# The configuration that Keras saves of a layer or a model, to make an equal one.
Config: TypeAlias = dict[str, Any]
