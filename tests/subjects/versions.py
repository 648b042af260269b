"""What the earliest versions of Keras and KerasHub lack, those of Python 3.10."""

import keras
import keras_hub
import pytest
from packaging.version import Version


def since(library, version, what):
    """Skips a test of what a library has from a version on."""
    return pytest.mark.skipif(
        Version(library.__version__) < Version(version),
        reason=f"{library.__name__} has {what} from version {version} on",
    )


needs_litert = since(keras, "3.13", "the format LiteRT")
needs_quantizers = since(keras, "3.13", "configurations of quantizers")
needs_no_preprocessor = since(keras_hub, "0.30", "presets of tasks without texts")
needs_xlm_roberta = since(keras_hub, "0.30", "a vocabulary of XLM-RoBERTa")
needs_word_steps = since(keras_hub, "0.32", "WordPiece without TensorFlow")
