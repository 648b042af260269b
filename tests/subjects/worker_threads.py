"""Workers of a run as threads of this process, which need no cluster of TensorFlow."""

import json
import threading

from tfeff.training import LostWorker, agreement, run, workers


class WorkerThreads:
    """Threads that `tfeff.training.workers` takes for workers; the first is the chief.

    They agree as workers do, and one that waits for another that has ended raises. The
    threads have the workers' names.
    """

    def __init__(self, monkeypatch, number=2):
        self._names = [f"worker {index}" for index in range(number)]
        self._local = threading.local()
        self._changed = threading.Condition()
        self._rounds, self._ended = {}, set()
        names = {
            "several_workers": self._is_worker,
            "worker_name": lambda: self._local.name,
            "chief_name": lambda: self._names[0],
            "gather": self._gather,
        }
        for module in (workers, agreement, run):
            for name, function in names.items():
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, function)

    def run(self, *functions):
        """Calls a function in each worker; returns what they return or raise."""
        self._rounds, self._ended = {}, set()
        results = [None] * len(functions)
        threads = [
            threading.Thread(
                target=self._call,
                args=(index, function, results),
                name=self._names[index],
            )
            for index, function in enumerate(functions)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def _call(self, index, function, results):
        self._local.name, self._local.round = self._names[index], 0
        try:
            results[index] = function()
        except Exception as error:
            results[index] = error
        with self._changed:
            self._ended.add(self._names[index])
            self._changed.notify_all()

    def _is_worker(self):
        return hasattr(self._local, "name")

    def _gather(self, value):
        with self._changed:
            values = self._rounds.setdefault(self._local.round, {})
            self._local.round += 1
            values[self._local.name] = json.dumps(value)
            self._changed.notify_all()
            while len(values) < len(self._names):
                if self._ended - values.keys():
                    raise LostWorker("another worker has ended")
                self._changed.wait()
            return {name: json.loads(values[name]) for name in self._names}
