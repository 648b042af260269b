"""What every layer, encoder and objective must hold to, one call each."""

from tests.checks.encoder import check_encoder
from tests.checks.layer import check_equations, check_layer
from tests.checks.numeric import (
    arrays_of,
    assert_close,
    check_gradients,
    randomize,
    rounding_to_nearest,
    variables_of,
)
from tests.checks.replicas import check_two_replicas, two_replicas

__all__ = [
    "arrays_of",
    "assert_close",
    "check_encoder",
    "check_equations",
    "check_gradients",
    "check_layer",
    "check_two_replicas",
    "randomize",
    "rounding_to_nearest",
    "two_replicas",
    "variables_of",
]
