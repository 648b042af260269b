"""AdamW, one weight and one step at a time."""

import numpy as np


def adamw(
    weights,
    gradients,
    rates,
    decays,
    factors,
    clip=None,
    epsilon=1e-6,
    bias_correction=True,
    beta_1=0.9,
    beta_2=0.999,
):
    """The weights after as many steps as there are rates.

    `weights` are arrays; `gradients[t]` those of step `t`; `decays` and `factors`
    hold the weight decay and the share of the rate of each weight.
    """
    w = [np.array(x, "float64") for x in weights]
    m, v = [0 * x for x in w], [0 * x for x in w]
    for t, rate in enumerate(rates, start=1):
        norm = np.sqrt(sum(np.sum(g.astype("float64") ** 2) for g in gradients[t - 1]))
        scale = 1.0 if clip is None else min(1.0, clip / norm)
        for i, g in enumerate(gradients[t - 1]):
            g = scale * g
            m[i] = beta_1 * m[i] + (1 - beta_1) * g
            v[i] = beta_2 * v[i] + (1 - beta_2) * g**2
            # The form of the Adam paper's section 2 with "epsilon hat", as in Keras.
            correction = 1
            if bias_correction:
                correction = np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
            update = correction * m[i] / (np.sqrt(v[i]) + epsilon)
            w[i] = w[i] - factors[i] * rate * (update + decays[i] * w[i])
    return w
