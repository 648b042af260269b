from .baselines import baseline_name as baseline_name
from .baselines import baseline_predictions as baseline_predictions
from .conll import (
    conll_dataset as conll_dataset,
)
from .conll import (
    read_conll as read_conll,
)
from .dataset import Dataset as Dataset
from .described import described_dataset as described_dataset
from .glue import glue_average as glue_average
from .metrics import (
    accuracy as accuracy,
)
from .metrics import (
    f1 as f1,
)
from .metrics import (
    macro_f1 as macro_f1,
)
from .metrics import (
    matthews_correlation as matthews_correlation,
)
from .metrics import (
    pearson as pearson,
)
from .metrics import (
    spearman as spearman,
)
from .mrqa import read_mrqa as read_mrqa
from .phrases import phrase_metrics as phrase_metrics
from .race import read_race as read_race
from .registry import (
    get as get,
)
from .registry import (
    names as names,
)
from .registry import (
    register as register,
)
from .sentences import read_sentences as read_sentences
from .squad import (
    read_squad as read_squad,
)
from .squad import (
    span_dataset as span_dataset,
)
from .squad_metrics import (
    squad_v1_metrics as squad_v1_metrics,
)
from .squad_metrics import (
    squad_v2_metrics as squad_v2_metrics,
)
from .submissions import (
    write_json as write_json,
)
from .submissions import (
    write_tsv as write_tsv,
)
from .tsv import (
    read_tsv as read_tsv,
)
from .tsv import (
    tsv_dataset as tsv_dataset,
)
