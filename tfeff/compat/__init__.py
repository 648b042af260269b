"""All uses of private names of Keras, KerasHub and PyTorch.

`tests/test_compat.py` shows on plain Keras why each workaround is needed: if a test
there fails, its workaround can be removed. These modules import Keras alone.
"""
