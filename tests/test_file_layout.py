"""Files of models keep the names of their weights, so that earlier ones load.

Keras names a weight by the attributes of the layers that hold it, and takes a layer
that several hold by the first of these names: an attribute more may rename them all.
"""

import hashlib
import io
import zipfile

import pytest

from tests.subjects.distillation import make_encoder
from tests.subjects.files import weights
from tfeff.objectives import (
    Distillation,
    MaskedLM,
    PermutationLM,
    ReplacedTokenDetection,
    generator_for,
)
from tfeff.tasks import Classifier


def replaced_token():
    encoder = make_encoder()
    return ReplacedTokenDetection(generator_for(encoder, 1 / 2), encoder)


def of_attention(attention, position="none", **changes):
    return MaskedLM(make_encoder(attention=attention, position=position, **changes))


MAKE = {
    "bert": lambda: of_attention("self", "absolute"),
    "shatter": lambda: of_attention("one_head"),
    "bias": lambda: of_attention({"name": "relative", "method": "bias"}),
    "huang1": lambda: of_attention({"name": "relative", "method": "huang1"}),
    "convbert": lambda: of_attention("mixed", feedforward={"num_groups": 2}),
    "albert": lambda: of_attention("self", sharing="all", embedding_dim=4),
    "blockbert": lambda: of_attention({"name": "blockwise", "head_blocks": "1:1"}),
    "xlnet": lambda: PermutationLM(
        make_encoder(position="none", attention={"name": "relative", "method": "xlnet"})
    ),
    "replaced_token": replaced_token,
    "layerwise": lambda: Classifier(make_encoder(), 2, pooling="layerwise"),
    "distillation": lambda: Distillation(make_encoder(1), make_encoder()),
    "distilled_head": lambda: Distillation(
        MaskedLM(make_encoder(1)), MaskedLM(make_encoder())
    ),
}
# The number of weights and the digest of their names.
KNOWN = {
    "bert": (42, "814db933dff0a696"),
    "shatter": (39, "348edfc519d447f8"),
    "bias": (42, "a1992c609b176d06"),
    "huang1": (43, "c78f305d97328a9e"),
    "convbert": (55, "caf4a1a44e1f8a56"),
    "albert": (27, "4d50b52b69627f17"),
    "blockbert": (41, "a42942b4328e0652"),
    "xlnet": (44, "625b0f4f633e797e"),
    "replaced_token": (81, "578848b2774f5755"),
    "layerwise": (41, "f604548698348a04"),
    "distillation": (58, "6d7d10df993906c0"),
    "distilled_head": (68, "3eb23353c21003ed"),
}


def names_of(path):
    """The names of the weights in a file, without the optimizer's."""
    content = zipfile.ZipFile(path).read("model.weights.h5")
    names = weights(io.BytesIO(content))
    return sorted(name for name in names if not name.startswith("optimizer/"))


@pytest.mark.quick("bert", "shatter", "albert", "convbert", "replaced_token")
@pytest.mark.parametrize("kind", MAKE)
def test_names_of_weights(kind, tmp_path):
    MAKE[kind]().save(tmp_path / "model.keras")
    names = names_of(tmp_path / "model.keras")
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    assert (len(names), digest) == KNOWN[kind], names
