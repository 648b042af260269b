"""Compiles a training step for slices of TPU pods; a process of `test_pods.py`.

Arguments: a name of `training_steps.NAMES`, a folder, and slices. Prints a line of JSON
for each of them.
"""

import json
import math
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = 4  # Of each device.


def main(name, folder, *slices):
    sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]
    os.environ["KERAS_BACKEND"] = "jax"
    from tpu_costs import corrected, without_tpu

    without_tpu()
    import collectives
    import jax
    import steps
    from jax.experimental import topologies

    from tests.subjects import training_steps

    for topology in slices:
        devices = topologies.get_topology_desc(topology, "tpu").devices
        model, batches = training_steps.make(name, ROWS * len(devices), folder)
        model.optimizer.build(model.trainable_variables)
        batch = jax.tree.map(
            lambda spec: jax.ShapeDtypeStruct(spec.shape, spec.dtype.as_numpy_dtype),
            batches.element_spec,
        )
        program = steps.compile_jax(model, batch, *devices)
        found = collectives.collectives(program.hlo_modules()[0].to_string())
        chips = len({tuple(device.coords) for device in devices})
        sizes = [math.prod(v.shape) for v in model.trainable_variables]
        tpu = topology.partition(":")[0]
        row = {
            "hosts": len({device.process_index for device in devices}),
            "chips": chips,
            "replicas": len(devices),
            "weights": sum(sizes),
            "operations": [vars(operation) for operation in found],
            "collective_seconds": collectives.seconds(found, tpu, chips),
            "seconds": corrected(program.cost_analysis()["optimal_seconds"]),
        }
        print(json.dumps({"topology": topology, **row}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
