"""Compiles a training step for slices of TPU pods; a process of `test_pods.py`.

Arguments: a name of `training_steps.NAMES`, a folder, and topologies. Prints a line of
JSON for each of them.
"""

import json
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]
os.environ["KERAS_BACKEND"] = "jax"

import tpu_costs

tpu_costs.without_tpu()

import collectives
import jax
import numpy as np
import steps
from jax.experimental import topologies

from tests.subjects import training_steps

ROWS = 4  # Of each device.


def main(name, folder, *slices):
    for slice_name in slices:
        devices = topologies.get_topology_desc(slice_name, "tpu").devices
        model, batches = training_steps.make(name, ROWS * len(devices), folder)
        model.optimizer.build(model.trainable_variables)
        assert training_steps.is_static(batches.element_spec)
        batch = jax.tree.map(
            lambda spec: jax.ShapeDtypeStruct(spec.shape, spec.dtype.as_numpy_dtype),
            batches.element_spec,
        )
        program = steps.compile_jax(model, batch, *devices)
        text = program.hlo_modules()[0].to_string()
        found = collectives.collectives(text)
        tpu, chips = slice_name.partition(":")[0], {tuple(d.coords) for d in devices}
        sizes = {v.path: int(np.prod(v.shape)) for v in model.trainable_variables}
        print(
            json.dumps(
                {
                    "slice": slice_name,
                    "hosts": len({device.process_index for device in devices}),
                    "chips": len(chips),
                    "replicas": len(devices),
                    "weights": sum(sizes.values()),
                    "largest": max(sizes.values()),
                    "operations": [vars(operation) for operation in found],
                    "seconds": collectives.seconds(found, tpu, len(chips)),
                    "estimate": tpu_costs.corrected(
                        program.cost_analysis()["optimal_seconds"]
                    ),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
