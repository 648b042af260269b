"""Apache Beam: its flags, checked before any work, and pipelines that end by name."""

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfeff.utils.checks import check_iterable, near_miss

# As the last line of a worker's traceback has it.
_ERROR = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Interrupt)): (.*)$", re.M)
_STEP = re.compile(r" \[while running '[^']*'\]")
_OWN = {"OSError": OSError, "TypeError": TypeError, "ValueError": ValueError}


class BeamJobs:
    """Runs pipelines by the runner of some flags.

    Args:
        flags: flags of Beam's pipeline options, each `--name=value` or `--name`.

    Raises:
        ImportError: if Beam, or what the runner needs of it, is not installed.
        TypeError: if `flags` are no list of strings.
        ValueError: if the runner or a flag is not known, or the runner lacks a flag.
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
                "`beam_flags` need Apache Beam: pip install tfeff[beam]"
            ) from error
        with _named_by_the_parser():
            options = PipelineOptions(flags)
            name = options.view_as(StandardOptions).runner
            self.runner = name or StandardOptions.DEFAULT_RUNNER
            known = StandardOptions.KNOWN_RUNNER_NAMES
            runner = _runner(self.runner, known)
            _check_known(flags, options, runner)
        self._options = options
        self._pipeline()  # It checks what the runner needs.

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
        except Exception as error:  # Of a runner, of which there are many.
            raise _failed(self.runner, str(error), type(error)) from error
        except BaseException:  # Such as KeyboardInterrupt.
            if result is not None:
                result.cancel()
            raise
        if state != "DONE":
            raise OSError(f"The Beam pipeline ended as {state} under {self.runner}")

    def _pipeline(self):
        import apache_beam as beam

        try:
            return beam.Pipeline(options=self._options)
        except ValueError as error:
            raise ValueError(
                f"`beam_flags` must have what {self.runner} needs: "
                f"{' '.join(str(error).split())}"
            ) from error


def _checked(flags: Sequence[str]) -> list[str]:
    if isinstance(flags, (str, bytes)):
        raise TypeError(
            "`beam_flags` must be a list of flags. Received: one string, "
            f"beam_flags={flags!r}"
        )
    flags = list(check_iterable("beam_flags", flags, "a list of flags"))
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
        return create_runner(name)
    except ImportError as error:
        raise ImportError(
            f"--runner={name} cannot be imported: {error}. See the extras of the "
            "package apache-beam"
        ) from error
    except (AttributeError, ValueError):
        known = sorted(k for k in known if not k.startswith("Test"))
        raise ValueError(
            f"--runner must be one of {', '.join(known)}. Received: "
            f"--runner={name}.{near_miss(name, known)}"
        ) from None


def _check_known(flags, options, runner) -> None:
    """Raises if Beam, and the runner's job server if it has one, know not all flags."""
    from apache_beam.runners.portability.portable_runner import PortableRunner

    parsers: list = []
    options.get_all_options(add_extra_args_fn=parsers.append)
    _, unknown = parsers[0].parse_known_args(flags)
    if unknown and isinstance(runner, PortableRunner):
        known_to_server = _options_of_server(runner, options)
        unknown = [f for f in unknown if _name_of(f) not in known_to_server]
    if unknown:
        flag = unknown[0].partition("=")[0]
        names = [
            name for action in parsers[0]._actions for name in action.option_strings
        ]
        raise ValueError(
            f"`beam_flags` must be flags that {type(runner).__name__} or Beam knows. "
            f"Received: {flag}.{near_miss(flag, names)}"
        )


def _options_of_server(runner, options) -> set[str]:
    from apache_beam.portability.api import beam_job_api_pb2

    try:
        service = runner.create_job_service(options).job_service
        request = beam_job_api_pb2.DescribePipelineOptionsRequest()
        return {
            option.name for option in service.DescribePipelineOptions(request).options
        }
    except Exception as error:  # Of gRPC, of downloads, of programs that lack.
        raise _failed(type(runner).__name__, str(error), type(error)) from error


def _name_of(flag: str) -> str:
    return flag.removeprefix("--").partition("=")[0]


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


def _failed(runner: str, text: str, kind: type[BaseException]) -> Exception:
    """The error of a failed pipeline: what a step raised, or what the runner says."""
    found = _ERROR.findall(text)
    name, message = found[-1] if found else (kind.__name__, text)
    message = _STEP.sub("", message).strip()
    error = _OWN.get(name)
    if error is not None:
        return error(message)
    lines = message.splitlines() or [""]
    return OSError(f"The Beam pipeline failed under {runner}: {name}: {lines[0]}")
