"""The GPU that JAX runs on."""

import jax
from steps import in_own_process


def find_gpu(allow_cpu: bool) -> str:
    """The kind of the device that JAX runs on, found in a process of its own.

    Args:
        allow_cpu: whether it may be another one than a GPU.

    Raises:
        SystemExit: if it is none.
    """
    platform, device = in_own_process(_find_device)
    if platform != "gpu" and not allow_cpu:
        raise SystemExit(
            f"No GPU: JAX {jax.__version__} sees the device {device!r} alone, so "
            "nothing was measured. (--allow_cpu measures that one.)"
        )
    return device


def _find_device() -> tuple[str, str]:
    device = jax.devices()[0]
    return device.platform, device.device_kind
