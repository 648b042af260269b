"""Published benchmarks: readers of their files, official metrics, submissions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "glue": ["read_glue"],
        "metrics": ["glue_metrics", "race_metrics", "superglue_metrics"],
        "mrqa": ["read_mrqa"],
        "race": ["read_race"],
        "squad": ["read_squad"],
        "squad_metrics": ["squad_v1_metrics", "squad_v2_metrics"],
        "submissions": ["write_glue", "write_json", "write_superglue"],
        "superglue": ["read_superglue"],
    },
)
