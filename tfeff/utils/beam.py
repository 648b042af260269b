"""Apache Beam: flags are checked before any work, and failures are named."""

import contextlib
import importlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfeff.utils.checks import check_ordered
from tfeff.utils.near_misses import near_miss

# As the last line of a worker's traceback has it.
_ERROR = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Interrupt)): (.*)$", re.M)
_STEP = re.compile(r" \[while running '[^']*'\]")
_OWN = {"OSError": OSError, "TypeError": TypeError, "ValueError": ValueError}


class BeamJobs:
    """Runs pipelines by the runner of some flags, one after another.

    Args:
        flags: flags of Beam's pipeline options, each `--name=value` or `--name`.

    Raises:
        ImportError: if Beam, or what the runner needs of it, is not installed.
        TypeError: if `flags` are no list of strings.
        ValueError: if the runner or a flag is not known, or the runner lacks a flag.
        OSError: if the runner's job server cannot be started or reached.
    """

    def __init__(self, flags: Sequence[str]):
        flags = _checked(flags)
        try:
            from apache_beam.options.pipeline_options import (
                PipelineOptions,
                StandardOptions,
            )
        except ImportError as error:
            raise ImportError(
                "`beam_flags` need Apache Beam: pip install 'tfeff[beam]'"
            ) from error
        with _named_by_the_parser():
            options = self._options = PipelineOptions(flags)
            name = options.view_as(StandardOptions).runner
            self._name = name or StandardOptions.DEFAULT_RUNNER
            self._runner = _runner(self._name, StandardOptions.KNOWN_RUNNER_NAMES)
            parsers: list = []
            options.get_all_options(add_extra_args_fn=parsers.append)
        self._pipeline()  # It looks for the flags that the runner needs.
        _, unknown = parsers[0].parse_known_args(flags)
        known_to_server = self._start_server()
        for flag in unknown:
            if flag.removeprefix("--").partition("=")[0] not in known_to_server:
                known = [f"--{name}" for name in options.get_all_options()]
                flag = flag.partition("=")[0]
                raise ValueError(
                    f"`beam_flags` must be flags that Beam or {self._name} knows. "
                    f"Received: {flag}.{near_miss(flag, known)}"
                )

    @classmethod
    def of(cls, flags: "Sequence[str] | BeamJobs") -> "BeamJobs":
        """Returns `flags` if they are jobs already, else the jobs of these flags."""
        return flags if isinstance(flags, BeamJobs) else cls(flags)

    def run(self, make: Callable[..., object], *arguments: Any) -> None:
        """Runs a pipeline to its end.

        Args:
            make: called with the empty pipeline and the arguments; it adds the steps.
            *arguments: the further arguments of `make`.

        Raises:
            OSError, TypeError, ValueError: as a step raised them; OSError for all else
                that ends a pipeline.
        """
        result = None
        try:
            pipeline = self._pipeline()
            make(pipeline, *arguments)
            result = pipeline.run()
            state = result.wait_until_finish() or result.state
        except Exception as error:  # Each of the many runners has its own.
            raise _failed(self._name, error) from error
        except BaseException:  # KeyboardInterrupt is one.
            if result is not None:
                result.cancel()
            raise
        if state != "DONE":
            raise OSError(f"The Beam pipeline ended as {state} under {self._name}")

    def _pipeline(self):
        import apache_beam as beam

        try:
            return beam.Pipeline(runner=self._runner, options=self._options)
        except ValueError as error:
            raise ValueError(
                f"`beam_flags` must have what {self._name} needs. "
                f"{' '.join(str(error).split())}"
            ) from error

    def _start_server(self) -> set[str]:
        """Starts or reaches the runner's job server; names of flags that it knows."""
        from apache_beam.options.pipeline_options import PortableOptions
        from apache_beam.portability.api import beam_job_api_pb2
        from apache_beam.runners.portability.portable_runner import PortableRunner

        runner, options = self._runner, self._options
        if not isinstance(runner, PortableRunner):
            return set()
        try:
            if not options.view_as(PortableOptions).job_endpoint:
                server = runner.default_job_server(options)
                runner.default_job_server = lambda options: server  # For all jobs.
            service = runner.create_job_service(options).job_service
            found = service.DescribePipelineOptions(
                beam_job_api_pb2.DescribePipelineOptionsRequest()
            )
        except NotImplementedError as error:  # Without an endpoint.
            raise ValueError(f"`beam_flags`: {error}") from error
        except Exception as error:  # From gRPC, downloads or missing programs.
            raise OSError(
                f"The job server of {self._name} cannot be started or reached: "
                f"{type(error).__name__} {error}".rstrip()
            ) from error
        return {option.name for option in found.options}


def check_picklable(documents: object) -> None:
    """Raises unless workers of Beam can be sent a corpus."""
    from apache_beam.internal import pickler

    try:
        pickler.dumps(documents)
    except Exception as error:  # From whatever the corpus holds.
        raise TypeError(
            "`documents` must be a corpus, which can be pickled for Beam's workers. "
            f"Received: {type(error).__name__}: {error}"
        ) from error


def _checked(flags: Sequence[str]) -> list[str]:
    if isinstance(flags, (str, bytes)):
        raise TypeError(
            "`beam_flags` must be a list of flags. Received: one string, "
            f"beam_flags={flags!r}"
        )
    flags = list(check_ordered("beam_flags", flags, "a list of flags"))
    for flag in flags:
        if not isinstance(flag, str):
            raise TypeError(f"`beam_flags` must be strings. Received: {flag!r}")
        if not flag.startswith("--") or flag == "--":
            raise ValueError(
                f"`beam_flags` must each be --name=value or --name. Received: {flag!r}"
            )
    return flags


def _runner(name: str, known: Iterable[str]):
    from apache_beam.runners.runner import create_runner

    try:
        runner = create_runner(name)
        if type(runner).__name__ == "DataflowRunner":
            # It is looked for where a job is submitted.
            importlib.import_module("apache_beam.runners.dataflow.internal.apiclient")
    except ImportError as error:
        raise ImportError(
            f"--runner={name} needs what is not installed, such as an extra of the "
            f"package apache-beam: {error}"
        ) from error
    except (AttributeError, ValueError):
        known = sorted(k for k in known if not k.startswith("Test"))
        raise ValueError(
            f"--runner must be one of {', '.join(known)}. Received: "
            f"--runner={name}.{near_miss(name, known)}"
        ) from None
    return runner


@contextlib.contextmanager
def _named_by_the_parser():
    """Turns argparse's message and exit into a ValueError."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            yield
    except SystemExit:
        *_, message = printed.getvalue().strip().splitlines() or [""]
        message = message.partition("error: ")[2] or message
        raise ValueError(
            f"`beam_flags` must be flags of Apache Beam. Received: {message}"
        ) from None


def _failed(runner: str, error: Exception) -> Exception:
    """The error of a failed pipeline: what a step raised, or what the runner says."""
    found = _ERROR.findall(str(error))
    name, message = found[-1] if found else (type(error).__name__, str(error))
    message = _STEP.sub("", message).strip()
    if name in _OWN:
        return _OWN[name](message)
    lines = message.splitlines() or ["it says no more"]
    return OSError(f"The Beam pipeline failed under {runner}: {name}: {lines[0]}")
