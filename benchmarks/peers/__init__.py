"""The contenders of `cpu.py` and `exported.py`: encoders that do the same work.

Every contender is an encoder of the same sizes. To train, all have the same masked LM
head on the same masked positions (dense to the embeddings' size, GELU, norm, product
with the token table), the mean cross-entropy in float32, gradients clipped at a global
norm of 1, and AdamW of their framework. Inference ends at the last hidden state.
With two streams, XLNet predicts the masked positions one after the other.

A step returns a number for which all of its work is needed.
"""

import contextlib
import importlib

from peers.common import HEADS, Contender, Sizes, make_batch

__all__ = [
    "HEADS",
    "Contender",
    "Sizes",
    "exported",
    "import_first",
    "make",
    "make_batch",
]
# In this order.
FIRST = ("torch", "triton")


def import_first() -> None:
    """Imports, where it is installed, what must be loaded before TensorFlow compiles.

    Triton, PyTorch's compiler, and TensorFlow bring LLVM each. The process dies where
    Triton is loaded after TensorFlow has compiled something.
    """
    for name in FIRST:
        # What is missing or broken is named as left out where a contender needs it.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def make(name: str, sizes: Sizes, task: str, dtype: str) -> Contender:
    """The contender `name`, a library (a module beside this one) and a model of it.

    Args:
        name: such as `"tfeff:bert_base"` or `"hugging_face:albert"`.
        sizes: what it shares with the others.
        task: `"train"` or `"inference"`.
        dtype: `"float32"` or `"mixed_bfloat16"`.

    Raises:
        ImportError: if the library is not installed.
    """
    library, model = name.split(":")
    module = importlib.import_module(f"peers.{library}")
    return module.make(model, sizes, task, dtype, make_batch(sizes))


def exported(name: str, sizes: Sizes, folder: str) -> dict:
    """The ways to run an encoder after an export, by the name of the runtime.

    Each is a function that exports, unless the file is there, and returns a
    `runtimes.Runner`.

    Args:
        name: as of `make`.
        sizes: as of `make`. Other lengths and batch sizes may share the folder.
        folder: where the files are; other encoders have other folders.

    Raises:
        ImportError: if the library is not installed.
    """
    library, model = name.split(":")
    return importlib.import_module(f"peers.{library}").exported(model, sizes, folder)
