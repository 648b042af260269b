"""The papers' runs, from settings to a served model.

Each is a dataclass of settings, which are the flags of the command `tfeff`, and a
function that runs it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "answer_settings": ["AnswerSettings"],
        "answering": ["answer"],
        "distill_settings": ["DistillSettings"],
        "distilling": ["distill"],
        "evaluate_settings": ["EvaluateSettings"],
        "evaluating": ["evaluate"],
        "finetune_settings": ["FinetuneSettings"],
        "finetuning": ["finetune"],
        "pretrain_settings": ["PretrainSettings"],
        "pretraining": ["pretrain"],
        "report_settings": ["ReportSettings"],
        "reporting": ["report"],
        "stack_settings": ["StackSettings"],
        "stacking": ["stack"],
    },
)
