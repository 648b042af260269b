"""The command `tfeff`: its help, its errors, and how settings become flags."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tests
import tfeff
from tests.subjects.settings import Example
from tests.subjects.streams import unreadable
from tfeff.command import flag_groups, flags, main
from tfeff.recipes import next_commands
from tfeff.recipes.configurations import CONFIGURATIONS
from tfeff.recipes.fields import fields_of
from tfeff.recipes.pretrain_settings import PretrainSettings


def output(capsys, *arguments):
    status = main.main(arguments)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_help_lists_the_commands(capsys):
    for arguments in ((), ("--help",), ("help",), ("-h",)):
        status, text, _ = output(capsys, *arguments)
        assert status == 0
        assert all(f"  {name} " in text for name in main.COMMANDS)
        assert max(map(len, text.splitlines())) <= 88


def test_the_version(capsys):
    for word in ("--version", "version"):
        assert output(capsys, word) == (0, f"{tfeff.__version__}\n", "")


def test_help_of_a_command(capsys):
    expected = output(capsys, "report", "--help")
    assert output(capsys, "help", "report") == expected
    assert output(capsys, "help")[1].startswith("usage: tfeff COMMAND")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pretrain", "--num_layers=2"), r"give --override=num_layers=VALUE\. See"),
        (("pretrain", "--num_train_epochs=2"), r"flag 'num_train_epochs'\. See: tfeff"),
        (("pretrain", "--lr=1"), r"flag 'lr'\. Its name is --learning_rate\. See"),
        (("finetune", "--lr=1"), r"flag 'lr'\. Its name is --learning_rates\. See"),
        (("pretrain", "--run_di=x"), r"Did you mean: run_dir \? See: tfeff pretrain"),
        (("presets", "--num_layers=2"), r"flag 'num_layers'\. See: tfeff presets"),
        (("finetune", "--learning_rates=1e-3", "1e-4"), "and several values commas"),
    ],
)
def test_what_is_no_flag_is_told(arguments, message, capsys):
    status, _, error = output(capsys, *arguments)
    assert status == 2 and re.search(message, error), error


@pytest.mark.parametrize("name", main.COMMANDS)
def test_help_of_a_command_says_all_settings(name, capsys):
    status, text, _ = output(capsys, name, "--help")
    assert status == 0
    for field in fields_of(main._load(main.COMMANDS[name].settings)):
        shown = field.name.upper() if field.positional else f"--{field.name}"
        shown = "-- FLAG" if field.behind_dashes else shown
        assert len(re.findall(rf"^  {shown}\b", text, re.MULTILINE)) == 1
    assert max(map(len, text.splitlines())) <= 88


def test_help_lists_flags_in_groups(capsys):
    names = [name for group in flag_groups.GROUPS.values() for name in group]
    assert len(names) == len(set(names))
    fields = {
        field.name
        for command in main.COMMANDS.values()
        for field in fields_of(main._load(command.settings))
    }
    assert not set(names) - fields
    _, text, _ = output(capsys, "finetune", "--help")
    heads = re.findall(r"\n\n(.*):\n  --(\w+)", text)
    assert heads == [
        ("required", "run_dir"),
        ("the model", "pretrained_steps"),
        ("texts and examples", "predict_split"),
        ("training", "batch_sizes"),
        ("devices, and what is kept", "strategy"),
    ]
    _, text, _ = output(capsys, "convert", "--help")
    assert "required:" not in text


def test_descriptions_fit_the_terminal(monkeypatch, capsys):
    for columns, width in (("60", 60), ("200", 88), ("10", 40)):
        monkeypatch.setenv("COLUMNS", columns)
        main.main(["pretrain", "--help"])
        lines = capsys.readouterr().out.splitlines()
        lengths = [len(line) for line in lines if re.match(r" {6}\w", line)]
        assert width - 12 < max(lengths) <= width
    page = flags.usage("pretrain", PretrainSettings)  # That of the reference.
    assert max(map(len, page.splitlines())) > 80


@pytest.mark.parametrize("name", ["", *main.COMMANDS])
def test_help_imports_no_library(name):
    code = (
        "import sys; from tfeff.command.main import main; "
        f"main({[name, '--help'][not name :]}); "
        "print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"keras", "tensorflow", "numpy"} & set(result.stderr.split())


@pytest.mark.parametrize("name", main.COMMANDS)
def test_functions_of_commands_exist(name):
    assert callable(main._load(main.COMMANDS[name].function))


def test_modules_of_ones_own_are_imported_first(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "first_module.py").write_text("print('first')")
    (tmp_path / "second_module.py").write_text("import first_module; print('second')")
    given = ("--import=second_module", "report", "--import=first_module")
    for arguments in (given, given[::-1], ("report", "--import", "second_module")):
        monkeypatch.delitem(sys.modules, "first_module", raising=False)
        monkeypatch.delitem(sys.modules, "second_module", raising=False)
        status, text, _ = output(capsys, *arguments, "--help")
        assert status == 0 and text.startswith("first\nsecond\nusage: tfeff report")
    status, _, error = output(capsys, "report", "--import=third_module")
    assert status == 1
    assert error == (
        "error: `--import` must name a module that can be imported; PYTHONPATH is the "
        "folder of one of your own. Received: --import=third_module: No module named "
        "'third_module'\n"
    )
    next_commands.repeat(())
    next_commands.print_next("go on", "cache")
    assert capsys.readouterr().out.splitlines()[-1] == "  tfeff cache"
    assert output(capsys, *given, "--help")[0] == 0
    next_commands.print_report_next("run")
    assert capsys.readouterr().out.splitlines()[-1] == (
        "  tfeff report --runs=run --import=second_module --import=first_module"
    )
    next_commands.repeat(())
    for module in (".relative", ""):
        status, _, error = output(capsys, "report", f"--import={module}")
        assert status == 1 and error.startswith("error: `--import` must name a module")
    # What stands behind dashes is of another program.
    assert main._import_modules(["cache", "--", "--import=third_module"]) == [
        *("cache", "--", "--import=third_module")
    ]


def test_unknown_commands_and_flags_name_a_near_miss(capsys):
    status, text, error = output(capsys, "konvert", "a", "b")
    assert (status, text) == (2, "")
    assert error == "error: there is no command 'konvert'. Did you mean 'convert'?\n"
    status, _, error = output(capsys, "convert", "a", "--destinaton=b")
    assert status == 2 and "Did you mean: destination" in error
    assert len(error.splitlines()) == 1 and "tfeff convert --help" in error


def test_a_terminal_without_a_character_shows_another_one():
    result = subprocess.run(
        [sys.executable, "-m", "tfeff", "configs"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "| ? |" in result.stdout and not result.stderr


@pytest.mark.quick("--help", "pretrain --help")
@pytest.mark.parametrize("command", ["--help", "pretrain --help", "presets"])
def test_a_reader_that_ends_early_gets_no_trace(command):
    for unbuffered in ("", "1"):
        with unreadable("pipe without a reader") as output:
            process = subprocess.run(
                [sys.executable, "-m", "tfeff", *command.split()],
                stdout=output,
                stderr=subprocess.PIPE,
                env={
                    **os.environ,
                    "TF_CPP_MIN_LOG_LEVEL": "3",
                    "PYTHONUNBUFFERED": unbuffered,
                },
            )
        assert b"Traceback" not in process.stderr and process.returncode == 1


def test_an_error_of_input_takes_one_line(capsys, tmp_path):
    status, _, error = output(capsys, "convert", str(tmp_path), str(tmp_path / "new"))
    assert status == 1
    assert re.fullmatch(r"error: `source` .*\n", error)


def test_an_error_from_below_keeps_its_trace(monkeypatch):
    monkeypatch.setattr(
        "tfeff.command.presets.print_presets", lambda _: int("from below")
    )
    with pytest.raises(ValueError, match="from below"):
        main.main(["presets"])


def test_flags_become_settings():
    values = flags.parse(
        Example,
        [
            *("--folder=x", "--kind=b", "--steps", "3", "--every=2", "--rate=0.25"),
            *("--sizes=1,2", "--names=a,b", "--exact"),
            *("--override=layers=4", "--override=attention=one_head"),
        ],
    )
    assert values == Example(
        folder="x",
        kind="b",
        steps=3,
        every=2,
        rate=0.25,
        sizes=(1, 2),
        names=("a", "b"),
        exact=True,
        override={"layers": 4, "attention": "one_head"},
    )
    assert flags.parse(Example, ["--folder=x"]) == Example(folder="x")


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, r"--folder \(Where\) must be given.", ()),
        (ValueError, "--sizes must be integers. Received: 1,x", ("--sizes=1,x",)),
        *(
            (TypeError, f"`{name}` must be {kind}.*: {name}='x'", (f"--{name}=x",))
            for name, kind in {
                "steps": "an integer of at least 1",
                "rate": "a finite number",
                "exact": "a bool",
            }.items()
        ),
        (ValueError, "`steps` must be an integer of at least 1", ("--steps=0",)),
        (ValueError, "`kind` must be one of", ("--kind=c",)),
        (ValueError, "Did you mean: steps", ("--stepps=3",)),
        (ValueError, "begin with '--'; .* Received: steps=3", ("steps=3",)),
        (ValueError, "`override` must be NAME=VALUE", ("--override=layers",)),
    ],
)
def test_wrong_flags_are_named(error, message, arguments):
    given = () if "folder" in message else ("--folder=x",)
    with pytest.raises(error, match=message):
        flags.parse(Example, [*given, *arguments])


def test_a_list_that_is_given_twice_is_told(capsys):
    values = flags.parse(Example, ["--folder=x", "--sizes=1,2", "--sizes=3"])
    assert values.sizes == (3,)
    told = capsys.readouterr().err
    assert "--sizes is given 2 times, of which the last counts: 3." in told
    flags.parse(Example, ["--folder=x", "--sizes=1,2", "--steps=1", "--steps=2"])
    assert not capsys.readouterr().err


def test_a_flag_in_place_of_another():
    from tfeff.recipes import FinetuneSettings

    given = ["--run_dir=r", "--pretrained=p", "--data=d", "--task=RTE", "--steps=5"]
    for more in ("--epochs=1", "--epochs=1,2"):
        with pytest.raises(ValueError, match="--epochs must be left out beside --ste"):
            flags.parse(FinetuneSettings, [*given, more])
    assert flags.parse(FinetuneSettings, given).steps == 5
    none = flags.parse(FinetuneSettings, [*given[:-1], "--steps=none", "--epochs=1"])
    assert none.steps is None and none.epochs == (1.0,)
    # A configuration may have the other one.
    settings = flags.parse(FinetuneSettings, [*given, "--config=shatter_finetune_glue"])
    assert settings.steps == 5


def test_what_stands_behind_dashes():
    from tfeff.recipes import CacheSettings

    behind = ("--runner=Other", "--flag", "value", "--", "-x")
    values = flags.parse(CacheSettings, ["--cache_dir=x", "--runner=R", "--", *behind])
    assert values.beam_flags == behind and values.runner == "R"
    assert flags.parse(CacheSettings, ["--cache_dir=x", "--"]).beam_flags == ()
    with pytest.raises(ValueError, match="behind '--'. Received: --steps=3 x"):
        flags.parse(Example, ["--folder=x", "--", "--steps=3", "x"])


def test_a_number_that_may_be_none():
    assert flags.parse(Example, ["--folder=x", "--every=none"]).every is None
    with pytest.raises(TypeError, match="`every` must be .*Received: every='never'"):
        flags.parse(Example, ["--folder=x", "--every=never"])


def test_a_configuration_fills_in_what_is_not_given():
    given = ["--config=shaw", "--run_dir=run", "--steps=9", "--global_clipnorm=none"]
    settings = flags.parse(PretrainSettings, [*given, "--override=num_layers=2"])
    assert settings == PretrainSettings.named(
        "shaw", run_dir="run", steps=9, global_clipnorm=None, override={"num_layers": 2}
    )
    assert (settings.batch_size, settings.global_clipnorm) == (160, None)
    assert "  --config=NAME\n" in flags.usage("pretrain", PretrainSettings)
    with pytest.raises(ValueError, match="Unknown command line flag 'config'"):
        flags.parse(Example, ["--folder=x", "--config=shaw"])


def test_configurations_are_listed(capsys):
    status, text, _ = output(capsys, "configs")
    assert status == 0 and len(text.splitlines()) == 2 + len(CONFIGURATIONS)
    row = "| `huang_finetune_glue` | `tfeff finetune` | MNLI, QQP, SST-2, MRPC | Huang "
    assert row in text
    assert output(capsys, "configs", "shaw") == output(
        capsys, "configs", "shaw_pretrain"
    )
    status, _, error = output(capsys, "configs", "shaw_pretain")
    assert status == 1 and "Did you mean 'shaw_pretrain'?" in error


def test_configurations_tell_what_their_paper_leaves_open(capsys):
    left = "Left open there, with the command's default: "
    for name, flags_left in {
        "huang4": "--steps=1000",
        "albert_base": "--batch_size=16 --steps=1000 --learning_rate=0.002",
        "shatter_finetune_glue": "--epochs=3.0",
    }.items():
        assert output(capsys, "configs", name)[1].endswith(f"{left}{flags_left}\n")
    assert left not in output(capsys, "configs", "shatter_base")[1]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_flags_that_are_listed_are_those_of_the_configuration(name, capsys):
    _, text, _ = output(capsys, "configs", name)
    _, command, *lines = text.splitlines()
    lines = [line for line in lines if line.startswith(" ")]
    cls = main._load(main.COMMANDS[command.removeprefix("tfeff ")].settings)
    given = [line.strip() for line in lines if "--task=" not in line]
    tasks = [shlex.split(line) for line in lines if "--task=" in line] or [[]]
    paths = ["run_dir", "data", "train", "dev", "pretrained"]
    known = {field.name for field in fields_of(cls) if field.required}
    known |= {"pretrained"} if CONFIGURATIONS[name].continues else set()
    paths = [f"--{path}=x" for path in paths if path in known]
    if CONFIGURATIONS[name].continues:  # The encoder has these itself.
        sizes = ("--preset=", "--vocabulary_size=", "--tokenizer_kind=")
        given = [flag for flag in given if not flag.startswith(sizes)]
    for task in tasks:
        own = task[:1]
        written = flags.parse(cls, [*shlex.split(" ".join(given)), *paths, *task])
        assert written == flags.parse(cls, [f"--config={name}", *paths, *own])


def test_help_of_settings():
    text = flags.usage("example", Example)
    assert "usage: tfeff example [--flag=value ...]" in text
    assert "  --kind=a|b\n      Which. Default: a." in text
    assert "  --exact, --noexact\n" in text
    assert "  --sizes=N,N,...\n      How large. Default: 16,32." in text
    assert "  --override=NAME=VALUE\n" in text


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("command", ["--version", "configs"])
def test_closed_streams_are_no_error(command, closed):
    shell = f"{shlex.quote(sys.executable)} -m tfeff {command} {closed}"
    result = subprocess.run(shell, shell=True, capture_output=True, text=True)
    assert result.returncode == 0 and not result.stderr
    assert bool(result.stdout) == (closed == "2>&-")


def test_a_full_disk_behind_the_output_takes_a_line():
    shell = f"{shlex.quote(sys.executable)} -m tfeff --version > /dev/full"
    result = subprocess.run(shell, shell=True, capture_output=True, text=True)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and "No space left on device" in line


@pytest.mark.slow
def test_a_job_is_done_where_nobody_reads_its_lines(tmp_path):
    source = Path(tests.__file__).parent / "convert" / "goldens" / "bert"
    command = [sys.executable, "-m", "tfeff", "convert", str(source)]

    def run(kind, name, unbuffered=""):
        with unreadable(kind) as stream:
            result = subprocess.run(
                [*command, str(tmp_path / name)],
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
                stdout=stream,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert (tmp_path / name / "model.weights.h5").exists()
        return result

    for unbuffered in ("", "1"):
        result = run("pipe without a reader", f"one{unbuffered}", unbuffered)
        assert (result.returncode, result.stderr) == (0, "")
    result = run("full disk", "two")
    # The log is lost, and that is told.
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.endswith("No space left on device, while writing the output")


def test_an_error_of_the_system_about_a_file_takes_one_line(monkeypatch, capsys):
    def refused(_):
        os.makedirs("/proc/none/of/these")

    monkeypatch.setattr("tfeff.command.presets.print_presets", refused)
    status, _, error = output(capsys, "presets")
    assert status == 1 and error.startswith("error: ") and "/proc/none" in error
