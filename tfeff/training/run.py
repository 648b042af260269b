"""A run directory: everything that one training run needs and leaves behind."""

import contextlib
import json
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import keras
import tensorflow as tf

from tfeff.storage.lease import holder_id
from tfeff.storage.naming import named_by_urls
from tfeff.storage.place import Place
from tfeff.storage.remote_run import RemoteRun, open_remote_run
from tfeff.storage.run_copy import RunCopy
from tfeff.training import run_folder, run_lock, run_seal
from tfeff.training.agreement import check_equal_settings, open_together, share
from tfeff.training.checkpoint_file import check_whole
from tfeff.training.checkpoints import check_kept_steps
from tfeff.training.early_stopping import check_patience
from tfeff.training.lost_workers import lost_workers_named
from tfeff.training.other_weights import check_leaves_weights
from tfeff.training.run_fit import FitSchedule, fit_run
from tfeff.training.workers import (
    from_chief,
    is_chief,
    several_workers,
    tell,
    worker_name,
)
from tfeff.utils.backend import check_tensorflow
from tfeff.utils.checks import check_callable, check_integer, check_json, differences
from tfeff.utils.files import write_text
from tfeff.utils.job_output import say
from tfeff.utils.partial import remove_partial
from tfeff.utils.paths import check_path, is_url
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import CELLS, CHECKPOINTS, CONFIG, MODEL, is_in

T = TypeVar("T")


class RunDirectory:
    """The directory of a training run, which a killed run goes on from.

    | file | content |
    |---|---|
    | `config.json` | the settings the run was started with |
    | `checkpoints/step-*.keras` | whole models, the newest few and those to keep |
    | `metrics.csv` | a row after every epoch |
    | `tensorboard/` | the same for TensorBoard |
    | `learning_curve.png` | the losses, drawn when matplotlib is installed |
    | `SHA256SUMS` | the digests of all files, once the run is finished |
    | `SHA256SUMS.earlier` | those digests, while a finished run is opened again |
    | `run.lock` | which process is at work; gone when it ends |

    Callers put further files beside them, by `run.path(...)`. What a killed process
    left unfinished is removed.

    One process at a time may open a directory; it may do so several times. It gives
    the directory back when it ends, when its last `RunDirectory` of it is closed or,
    if it is not at a URL, deleted, or at the end of a `with` block.

    Several workers have one directory, in a folder that all of them see or at a URL.
    All make a `RunDirectory` of it, in the scope of their strategy. One of them, the
    chief, opens and writes it; the others read.

    Args:
        directory: the folder; made if missing. At a URL, this process works on a copy
            on this machine, which it publishes after each checkpoint; of several
            workers the chief does, and the others have copies of what they read. See
            docs/STORAGE.md.
        config: what determines the run's numbers, JSON values by name; no NaN.
        upgrade: called with the configuration of a directory that exists; returns it
            as this version of a program writes it.

    Attributes:
        is_chief: whether this process writes the run's files: it is the chief of
            several workers, or alone.

    Raises:
        TypeError: if `config` has other values than JSON's, or `upgrade` cannot be
            called.
        ValueError: on another backend than TensorFlow; if `config` has NaN; if the
            folder cannot be made, another process has opened it, or the URL cannot be
            written to; if it holds a run of another configuration (the message lists
            the differences), or files that are not a run's; if a file whose digest is
            known is damaged. In every worker, if they have other configurations or
            versions, or one does not see the folder or URL that the chief has opened.
        LostWorker: if another worker has ended or cannot be reached.

    Example:

    >>> import os, tempfile
    >>> with RunDirectory(tempfile.mkdtemp() + "/run", {"preset": "bert_tiny"}) as run:
    ...     os.path.basename(run.path("config.json"))
    'config.json'
    """

    @lost_workers_named()
    def __init__(
        self,
        directory: str | os.PathLike,
        config: Mapping,
        upgrade: Callable[[dict], dict] = dict,
    ):
        check_tensorflow("`RunDirectory`")
        self.config = check_json("config", config)
        if differences(self.config, self.config):
            raise ValueError(
                "`config` must not have NaN, which equals nothing that a later start "
                f"has. Received: config={self.config}"
            )
        check_callable("upgrade", upgrade)
        self.is_chief = is_chief()
        self._lock: run_lock.RunLock | None = None
        self._unlock: Callable[[], object] = lambda: None
        # The chief alone of several workers has it.
        self._remote: RemoteRun | None = None
        self._copy: RunCopy | None = None
        # In its scope the chief cannot make a model alone.
        self._strategy = tf.distribute.get_strategy()
        self._has_others = several_workers()
        self._is_remote = is_url(directory)
        if self._is_remote:
            self.url = self.directory = str(directory)
        else:
            self.url = self.directory = check_path("directory", directory)
        if self._is_remote and not self.is_chief:
            self._copy = RunCopy("directory", self.url, worker_name())
            self.directory = self._copy.folder
        try:
            if self._has_others:
                check_equal_settings(self.config)
                given = self.url if self._is_remote else os.path.abspath(self.directory)
                open_together(given, lambda: self._open(upgrade), self._seen)
            else:
                self._open(upgrade)
        except BaseException:
            self.close()
            raise
        # Only now: messages until here have the path as it was given.
        self.directory = os.path.abspath(self.directory)

    def _open(self, upgrade) -> str | None:
        """Opens the directory; returns its lease, where it is at a URL."""
        if self._is_remote:
            self._remote = open_remote_run("directory", self.url)
            self.directory = self._remote.folder
        self._open_folder(upgrade)
        return self._remote.lease if self._remote else None

    def _seen(self, lease: str | None) -> str | None:
        """The chief's lease or lock, as this worker sees it."""
        if not self._is_remote:
            return run_lock.read(self.directory)
        return lease and holder_id(Place("directory", self.url), lease)

    def _open_folder(self, upgrade):
        run_folder.check_kind(self.directory)
        lock = self._lock = run_lock.lock_directory(self.directory)
        self._unlock = weakref.finalize(self, lock.close)
        if run_folder.files(self.directory):
            run_folder.check_settings(self.directory, self.config, upgrade, self.url)
            if lock.users == 1:
                self._reseal()
            run_seal.check_folder(self.directory)
            remove_partial(self.directory)
            run_seal.unseal_folder(self.directory)
            folder = os.path.abspath(self.directory)
            lock.at_end.callback(run_seal.reseal_folder, folder)
            return
        lock.is_new = True
        self._write_config()

    def _write_config(self):
        write_text(self.path(CONFIG), json.dumps(self.config, indent=2))

    def _reseal(self):
        """Takes up the digests that a killed process had set aside."""
        if changed := run_seal.reseal_folder(self.directory):
            say(
                f"{self.url} was finished, and then opened by a process that was "
                f"killed. It has changed {', '.join(changed)}, unless that is damage."
            )

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Releases the directory; a start that made nothing leaves nothing there."""
        lock, self._lock = self._lock, None
        is_unused = lock and lock.users == 1 and lock.is_new
        # The folder may be gone. While the lock is held, no other process opens it.
        with contextlib.suppress(OSError):
            if is_unused and run_folder.files(self.directory) <= {CONFIG}:
                os.remove(self.path(CONFIG))
        remote, self._remote = self._remote, None
        try:
            self._unlock()
        finally:
            if remote is not None:
                remote.close()

    def path(self, *parts: str) -> str:
        """The name of a file in the directory."""
        return os.path.join(self.directory, *parts)

    @lost_workers_named()
    def by_chief(
        self,
        make: Callable[[], T],
        read: Callable[[], T],
        files: Sequence[str] | None = None,
    ) -> T:
        """Lets the chief make something in the directory, which the other workers read.

        Args:
            make: called in the chief, or by a process alone.
            read: called in the other workers, when `make` has returned.
            files: names of the files and folders in the directory that `read` reads: at
                a URL the others fetch these alone. `None` for all but checkpoints and
                TensorBoard's.

        Returns:
            What `make` or `read` returns.

        Raises:
            ValueError: in the other workers, with the message of what `make` raises; in
                every worker, if the files cannot be published, or one cannot fetch
                them.
            LostWorker: if another worker has ended or cannot be reached.
        """
        if not self._has_others:
            return make()
        made: Any = None
        error = None
        if self.is_chief:
            try:
                made = make()
            except Exception as raised:
                error = raised
        with self._strategy.scope():
            tell(None, error)
        self._share(files)
        return made if self.is_chief else read()

    @lost_workers_named()
    def share(self, *files: str) -> None:
        """Lets all workers read files that the chief has written; all call it.

        Where the directory is at a URL, the chief publishes all files, and the others
        fetch these. In a folder that all workers see there is nothing to do.

        Args:
            *files: names of files and folders in the directory.

        Raises:
            ValueError: in every worker, if the files cannot be published, or one cannot
                fetch them.
            LostWorker: if another worker has ended or cannot be reached.
        """
        self._share(files)

    def _share(self, files):
        if self._is_remote and self._has_others:
            with self._strategy.scope():
                share(
                    self.url,
                    lambda: self._remote.held(),
                    lambda version: self._copy.fetch(version, files),
                )

    def seal(self, name: str) -> None:
        """Notes the digest of a file that is not to change any more.

        Every later start finds out whether it is still as it was, and so does another
        call. Of several workers the chief does it.

        Raises:
            ValueError: if the file is no more as it was.
        """
        if self.is_chief:
            run_seal.seal_file(self.path(name))

    def shown(self, path: str) -> str:
        """A path in the directory as messages have it: at its URL, if it has one."""
        return self.url.rstrip("/") + path[len(self.directory.rstrip("/")) :]

    @contextlib.contextmanager
    def published(self) -> Iterator[None]:
        """Publishes what the block has written, where the directory is at a URL."""
        try:
            yield
        finally:
            if self._remote is not None:
                self._remote.publish()

    def finish(self) -> None:
        """Notes the digests of all files.

        The next start compares them. If that one does not finish, the digests of the
        files that it did not change stay, also where it is killed: then a line on
        standard error names the others at the start behind it. Of several workers the
        chief does it.

        Raises:
            ValueError: if a checkpoint, which may be of an earlier start, is damaged:
                its digest would call it whole.
        """
        if not self.is_chief:
            return
        with self.published():
            if not is_there(self.path(CONFIG)):  # Somebody deleted it.
                self._write_config()
            with named_by_urls({self.directory: self.url}):
                for name in run_seal.sealed_names(self.directory):
                    is_own = name == MODEL or is_in(name, CELLS, CHECKPOINTS)
                    if is_own and name.endswith(".keras"):
                        check_whole(self.path(name))
            run_seal.seal_folder(self.directory)

    @lost_workers_named()
    def fit(
        self,
        make_model: Callable[[], keras.Model],
        make_dataset: Callable,
        *,
        total_steps: int,
        steps_per_epoch: int,
        tokens_per_step: int,
        validation_data: Any = None,
        patience: int | None = None,
        keep_checkpoints: int = 2,
        keep_steps: Sequence[int] = (),
        callbacks: Sequence[keras.callbacks.Callback] = (),
        run_steps: int | None = None,
    ) -> keras.Model:
        """Trains to the end, from the newest checkpoint if there is one.

        The position in the data is kept: a run that was killed and started again has
        the metrics of one that was not. A kill loses the epoch at hand, and the one
        before it if its checkpoint was still being written. Ctrl-C, SIGTERM and SIGHUP
        lose none: they wait for the end of the step, or of the validation, and for its
        checkpoint, then do what they would have done at once. A second one does not
        wait. A signal to one of several workers ends all of them after the same step.

        Call it in the scope of the distribution strategy. Several workers all call it.
        The chief writes, and all resume from its newest checkpoint. The number of
        workers and of replicas may be another one at each start.

        Args:
            make_model: makes the compiled model; not called on resuming.
            make_dataset: called with a number of batches, returns the endless
                training `tf.data.Dataset` from there on.
            total_steps: integer, a multiple of `steps_per_epoch`.
            steps_per_epoch: integer, steps between validations, rows of metrics and
                checkpoints; a multiple of the model's `steps_per_execution`.
            tokens_per_step: integer, tokens in a step, for the progress line.
            validation_data: `tf.data.Dataset` for `val_` metrics, or `None`.
            patience: integer, validations in a row without a new lowest `val_loss`
                after which the training ends before `total_steps`, also over several
                starts; `metrics.csv` has their number. The model keeps its last
                weights. `None` disables this.
            keep_checkpoints: integer, how many checkpoints to keep.
            keep_steps: integers, multiples of `steps_per_epoch` up to `total_steps`:
                the steps whose checkpoints are kept beside those. Each start deletes
                older ones that it does not name.
            callbacks: more callbacks, those of each worker. They come before those
                that write files: what they add to the metrics of an epoch is written
                too. One that sets `stop_training` of the model ends the training after
                that step or epoch, with a checkpoint, which the next start goes on
                from; of several workers it must do so in all.
            run_steps: integer, steps of the whole run, for the progress line, where
                `total_steps` are those of a part of it; `None` if they are all.

        Returns:
            The trained model. If its optimizer keeps moving averages of the weights
            (`use_ema`), it has these in the end, while checkpoints and metrics are of
            the weights themselves.

        Raises:
            ValueError: if the steps do not fit each other or those trained so far;
                with `patience`, if an earlier epoch has no `val_loss`; if the newest
                checkpoint is truncated or corrupted; in every worker, if they have not
                the same data, or do not see the same checkpoint; if this is called in
                the scope of several workers' strategy, and the directory was not opened
                there.
            OSError: if a checkpoint cannot be written, after a step or at the end.
            Diverged: after the first epoch whose loss or weights are not finite, or a
                step at which a signal or a callback ends the training. No file is
                written of it.
            LostWorker: if another worker has ended, was told to end by a signal, or
                cannot be reached.
        """
        steps_per_epoch = check_integer("steps_per_epoch", steps_per_epoch)
        keep_checkpoints = check_integer("keep_checkpoints", keep_checkpoints)
        if check_integer("total_steps", total_steps) % steps_per_epoch:
            raise ValueError(
                "`total_steps` must be a multiple of `steps_per_epoch`. Received: "
                f"total_steps={total_steps}, steps_per_epoch={steps_per_epoch}"
            )
        if run_steps is None:
            run_steps = total_steps
        schedule = FitSchedule(
            total_steps=total_steps,
            steps_per_epoch=steps_per_epoch,
            run_steps=check_integer("run_steps", run_steps, total_steps),
            tokens_per_step=tokens_per_step,
            patience=check_patience(patience, validation_data),
            keep_checkpoints=keep_checkpoints,
            keep_steps=check_kept_steps(keep_steps, steps_per_epoch, total_steps),
        )
        check_leaves_weights(callbacks)
        self._check_scope()
        return fit_run(
            self, schedule, make_model, make_dataset, validation_data, callbacks
        )

    def check_held(self) -> None:
        """Raises if a run at a URL is no more this process's; all workers call it.

        Raises:
            ValueError: in every worker, naming who has it.
        """
        if self._is_remote:
            remote: Any = self._remote  # The others have none.
            from_chief(lambda: remote.check())

    def _check_scope(self):
        """Raises unless the directory was opened where `fit` is called."""
        if several_workers() != self._has_others:
            raise ValueError(
                "`RunDirectory` must be made where `fit` is called: in the scope of "
                "the strategy, by all of several workers, of one folder. Received: "
                f"{self.url}, opened "
                + ("for several workers" if self._has_others else "by one process")
            )
