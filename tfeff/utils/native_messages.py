"""Lines that TensorFlow's compiled code writes to standard error."""

import glob
import os

NVIDIA = "/dev/nvidia[0-9]*"
# Windows' subsystem has GPUs of all makers behind one device, and NVIDIA's tool there.
NVIDIA_IN_WSL = "/usr/lib/wsl/lib/nvidia-smi"
_DEVICES = (NVIDIA, "/dev/dxg", "/dev/kfd", "/dev/accel*", "/dev/vfio/[0-9]*")


def set_log_level() -> None:
    """Leaves out what nobody can act on; call it before TensorFlow is imported.

    TensorFlow can leave out lines by their severity alone. Warnings and lesser messages
    are about what was compiled in, and about the processor's instructions. On a machine
    without an accelerator errors are left out, too: they say that there is none
    (`failed call to cuInit`), or which of oneDNN's kernels its processor cannot run
    (`oneDNN supports DT_INT64 only on …`). What fails raises an exception in any case.
    A `TF_CPP_MIN_LOG_LEVEL` that is set stays as it is.
    """
    has_device = any(glob.glob(pattern) for pattern in _DEVICES)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if has_device else "3")
