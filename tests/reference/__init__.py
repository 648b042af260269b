"""Literal NumPy float64 versions of the Shatter paper's equations.

They are written from the paper alone, one function an equation, with loops over
positions and heads, and know nothing of `tfeff`. A layer's weights come as a
mapping from names such as "query/kernel" to arrays. Functions take one sequence:
`hidden` [T, D] and `visible` [T] (True = real token); `batched` adds the batch.
"""

from tests.reference.attention import batched
from tests.reference.attention import one_head_attention
from tests.reference.attention import one_head_pooling
from tests.reference.attention import partitioned_attention
from tests.reference.attention import self_attention
from tests.reference.attention import softmax_pooling
from tests.reference.encoder import embedding
from tests.reference.encoder import encoder_block
from tests.reference.encoder import feed_forward
from tests.reference.encoder import gelu
from tests.reference.encoder import layerwise_pooling
from tests.reference.encoder import part_of
from tests.reference.partition import bucket_function
from tests.reference.partition import partition_function
from tests.reference.partition import partition_mask
