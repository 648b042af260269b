"""Models to fine-tune, and how their examples are augmented.

The names are imported when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "augmentation.augment": ["augment"],
        "augmentation.word_vectors": ["WordVectors", "read_word_vectors"],
        "classifier": ["Classifier"],
        "multiple_choice": ["MultipleChoice"],
        "pretrained": ["load_pretrained", "save_pretrained"],
        "regressor": ["Regressor"],
        "span_qa": ["SpanQA"],
    },
)
