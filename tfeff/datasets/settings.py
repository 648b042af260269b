"""Fine-tuning settings of the papers, by the names of the recipes' flags."""

# The paper gives them "for all tasks", and learning rates for GLUE.
SHATTER = {
    "source": "Tian et al., 2021, Shatter, section 5.2",
    "batch_sizes": (16,),
    "eval_every": 1000,
}
CONVBERT = {
    "source": "Jiang et al., 2020, ConvBERT, section 6.3",
    "learning_rates": (5e-5, 1e-4, 2e-4, 3e-4),
    "batch_sizes": (32,),
    "epochs": (3, 10),
    "weight_decay": (0.01, 0.1),
    "layer_decay": 0.8,
    "warmup": 0.1,
    "dropout": 0.1,
}
BLOCKBERT = {
    "source": "Qiu et al., 2020, BlockBERT, section A.4",
    "learning_rates": (5e-6, 1e-5, 2e-5, 3e-5, 5e-5),
    "batch_sizes": (16, 32),
    "epochs": 4,
    "stride": 128,
}
HUANG = {
    "source": "Huang et al., 2020, Better relative position embeddings, section 4.2",
    "learning_rates": (3e-5,),
    "batch_sizes": (32,),
    "epochs": 3,
}
# For a pretrained large BERT whose position table is replaced by method 4.
HUANG_SWAPPED = {
    "source": "Huang et al., 2020, Better relative position embeddings, section 4.4",
    "learning_rates": (5e-5,),
    "epochs": 3,
}
