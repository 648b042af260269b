from .augmentation.augment import augment as augment
from .augmentation.word_vectors import (
    WordVectors as WordVectors,
)
from .augmentation.word_vectors import (
    read_word_vectors as read_word_vectors,
)
from .classifier import Classifier as Classifier
from .in_batch_contrast import InBatchContrast as InBatchContrast
from .lora import (
    load_lora as load_lora,
)
from .lora import (
    save_lora as save_lora,
)
from .multiple_choice import MultipleChoice as MultipleChoice
from .pretrained import (
    load_pretrained as load_pretrained,
)
from .pretrained import (
    save_pretrained as save_pretrained,
)
from .regressor import Regressor as Regressor
from .saved_models import (
    load_masked_lm as load_masked_lm,
)
from .saved_models import (
    load_objective as load_objective,
)
from .saved_models import (
    load_task as load_task,
)
from .sentence_embedding import SentenceEmbedding as SentenceEmbedding
from .span_qa import SpanQA as SpanQA
from .task import Task as Task
from .token_classifier import TokenClassifier as TokenClassifier
