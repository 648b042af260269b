"""Made-up rows of the campaign."""

LOSSES = {
    "BERT": (2.0, 2.2),
    "No_Position": (5.0, 5.2),
    "Part_Mask": (2.1, 2.35),
    "1H_Softmax": (2.1, 2.1),
}


def a_row(metrics, **others):
    row = {"metrics": metrics, "tokens": 1000, "seconds": 1, "command": "tfeff"}
    return row | {"commit": "c", "machine": "m", "versions": "v"} | others


def a_cost(cost):
    quartiles = {"cost_low": 0.9 * cost, "cost_high": 1.1 * cost}
    return a_row({"cost": cost, **quartiles})


def a_cell(system, seed, stage="pretraining", task=""):
    return {"stage": stage, "system": system, "task": task, "seed": seed}
