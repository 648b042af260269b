"""Models to fine-tune, and augmentation of their examples.

Names are imported at their first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "augmentation.augment": ["augment"],
        "augmentation.word_vectors": ["WordVectors", "read_word_vectors"],
        "classifier": ["Classifier"],
        "lora": ["load_lora", "save_lora"],
        "multiple_choice": ["MultipleChoice"],
        "pretrained": ["load_pretrained", "save_pretrained"],
        "regressor": ["Regressor"],
        "saved_models": ["load_masked_lm", "load_objective", "load_task"],
        "span_qa": ["SpanQA"],
        "token_classifier": ["TokenClassifier"],
    },
)
