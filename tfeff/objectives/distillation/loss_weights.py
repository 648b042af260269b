"""The weights of losses and of layers, λ in TinyBERT's equation 6."""

from collections.abc import Mapping, Sequence

from tfeff.utils.checks import check_choice, check_mapping, check_weight


def check_loss_weights(
    loss_weights: Mapping[str, float] | None, terms: Sequence[str]
) -> dict[str, float]:
    """The weight of each term: 1 where none is given.

    Raises:
        ValueError: if a weight is negative, infinite or of another term, or all are 0.
        TypeError: if it is not a mapping of numbers.
    """
    weights = dict.fromkeys(terms, 1.0)
    if loss_weights is None:
        return weights
    for name, value in check_mapping(
        "loss_weights", loss_weights, "losses to numbers"
    ).items():
        check_choice("loss_weights", name, terms)
        weights[name] = check_weight(f"loss_weights[{name!r}]", value)
    if not any(weights.values()):
        raise ValueError(
            "`loss_weights` must have a weight above 0. "
            f"Received: loss_weights={loss_weights!r:.80}"
        )
    return weights


def check_layer_weights(
    layer_weights: Sequence[float] | None, num_layers: int
) -> list[float]:
    """λ_0 to λ_{M+1}: all 1 if none are given.

    Raises:
        ValueError: if there are not M + 2 of them, one is negative or infinite, or
            all are 0.
        TypeError: if it is not a sequence of numbers.
    """
    if layer_weights is None:
        return [1.0] * (num_layers + 2)
    received = f"Received: layer_weights={layer_weights!r:.80}, {num_layers} layers"
    if isinstance(layer_weights, str) or not isinstance(layer_weights, Sequence):
        raise TypeError(f"`layer_weights` must be a list of numbers. {received}")
    if len(layer_weights) != num_layers + 2:
        raise ValueError(
            "`layer_weights` must have one entry for the embedding, one for each layer "
            f"of the student, and one for the predictions. {received}"
        )
    weights = [
        check_weight(f"layer_weights[{index}]", value)
        for index, value in enumerate(layer_weights)
    ]
    if not any(weights):
        raise ValueError(f"`layer_weights` must have one above 0. {received}")
    return weights


def weights_left(
    weights: Mapping[str, float], layer_weights: Sequence[float]
) -> dict[str, float]:
    """The weights of those terms that are not 0, by themselves or by their layers'."""
    first, *of_layers, last = layer_weights
    factors = {"embedding": first, "prediction": last}
    factors |= dict.fromkeys(("hidden", "attention"), any(of_layers))
    return {
        name: weight
        for name, weight in weights.items()
        if weight and factors.get(name, True)
    }
