"""The command `python -m tfeff.convert SOURCE DESTINATION`."""

import argparse
import sys
from collections.abc import Sequence

from tfeff.convert.conversion import convert


def main(arguments: Sequence[str] | None = None) -> int:
    """Converts a checkpoint and says what became of it.

    Args:
        arguments: the command line; `None` means the process's own.

    Returns:
        0, or 1 after an error, which goes to the standard error stream.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tfeff.convert",
        description="Writes a published checkpoint as a preset of tfeff.encoders."
        "Encoder: BERT, ALBERT, ConvBERT or XLNet of Hugging Face, BERT or ALBERT of "
        "the Model Garden, or the authors' ConvBERT.",
    )
    parser.add_argument(
        "source",
        help="folder with safetensors and config.json, or with a TensorFlow "
        "checkpoint; or a name on the Hugging Face hub",
    )
    parser.add_argument("destination", help="folder to write; it must not exist")
    options = parser.parse_args(arguments)
    print(f"Reading {options.source} ...", flush=True)
    try:
        converted = convert(options.source, options.destination)
    except (OSError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    encoder, tokenizer = converted.encoder, converted.tokenizer
    print(
        f"Wrote {options.destination}: an encoder of {encoder.num_layers} layers, "
        f"{encoder.count_params():,} weights"
    )
    if tokenizer is None:
        print("Without a tokenizer: the source has no vocab.txt or spiece.model")
    else:
        folds = ", lower-casing" if tokenizer.get_config().get("lowercase") else ""
        size = tokenizer.vocabulary_size()
        print(f"With its {type(tokenizer).__name__} of {size:,} ids{folds}")
    for kind, count in sorted(converted.ignored.items()):
        print(f"Left out: {kind} ({count} tensors)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
