"""The README and the pages: their code runs, and what they name and list exists."""

import re
import shlex

import pytest

from tests.checks.pages import (
    PAGES,
    REPOSITORY,
    anchors,
    code_blocks,
    links,
    printed_by,
    prose_of,
    python_blocks,
    text_of,
)

# The pages whose code runs here, each in names of its own and twice, as cells of a
# notebook are, one after another in one folder: fine-tuning begins with the preset that
# the README's code has left. Other pages have tests of their own.
RUN = {
    "README.md": [
        "export/1\n",
        "export/2\n",
        "(2, 128)",
        "b''",
    ],  # The text without a mask has no filling.
    "docs/PYPI.md": ["served/1\n"],
    "docs/LAYERS.md": ["(2, 2)", "(4, 2, 100)"],
    "docs/EXTENDING.md": ["\nMaxClassifier 1000.0\n"],
    "docs/ENCODERS.md": ["(2, 9, 512) 3", "'shatter_base'", "(1, 700, 128)"],
    "docs/PRETRAINING.md": ["\n4\n"],
    "docs/FINETUNING.md": ["\nWeather\n", "precision    recall"],
    "docs/DISTILLATION.md": ["\n4 8\n", "(99, 2)"],
    "docs/FIGURES.md": ["\n["],
}
PROGRAMS = ("make", "tfeff")
# Of all commands, and of `benchmarks/sweeps.py`.
MORE_FLAGS = {"help", "list"}
OWN_TESTS = {"CONTRIBUTING.md", "docs/CONVERT.md"}


@pytest.mark.slow
def test_code_of_the_pages(tmp_path):
    blocks = []
    for page in RUN:
        code = "\n".join(python_blocks(page))
        blocks.append(f"print('page', {page!r})\nnames = {{}}\n")
        blocks += [f"exec({code!r}, names)"] * 2
    printed = re.split(r"^page (.*)$", printed_by(blocks, tmp_path), flags=re.MULTILINE)
    by_page = dict(zip(printed[1::2], printed[2::2]))
    for page, expected in RUN.items():
        for text in expected:
            assert text in by_page[page], (page, text, by_page[page])


@pytest.mark.slow
def test_code_of_contributing(tmp_path):
    blocks = python_blocks("CONTRIBUTING.md")
    assert len(blocks) == 3
    code = [*blocks, *blocks, "print(encoder(encoder.input)['sequence_output'].shape)"]
    code.append("print(tfeff.datasets.names()[-1], tfeff.objectives.get('many_masks'))")
    printed = printed_by(code, tmp_path)
    assert "(None, None, 128)\nForecast PretrainingObjective" in printed


def test_every_page_with_code_is_run():
    """A page's test names it: `docs/EXPORT.md`."""
    tests = {path: path.read_text("utf-8") for path in REPOSITORY.glob("tests/*.py")}
    for page in PAGES:
        if python_blocks(page) and page not in {*RUN, *OWN_TESTS}:
            assert any(f'"{page}"' in text for text in tests.values()), page


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in links(page):
        file, _, anchor = target.partition("#")
        path = (REPOSITORY / page).parent / file if file else REPOSITORY / page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_pages_exist(page):
    """Targets of make, commands of tfeff, and their flags."""
    from tfeff.command.main import COMMANDS, _load
    from tfeff.recipes.fields import fields_of

    text = text_of(page)
    flags = {
        name: {
            "config",
            "import",
            *(x.name for x in fields_of(_load(command.settings))),
        }
        for name, command in COMMANDS.items()
    }
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for command in set(re.findall(r"`make ([a-z-]+)", text)):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command
    for block in code_blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            program, _, rest = line.partition(" ")
            words = shlex.split(rest, comments=True) if program in PROGRAMS else []
            if program == "make":
                assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE), line
            if program != "tfeff" or words[0].startswith("-"):
                continue
            assert words[0] in COMMANDS, line
            # Those behind ` -- ` are of a runner of Apache Beam.
            own = line.split(" -- ")[0]
            assert not unknown_flags(own, flags[words[0]]), f"{page}: {line}"
    for code in re.findall(r"`((?:tfeff [a-z]+ )?--[^`]*)`", prose_of(page)):
        command = code.split()[1] if code.startswith("tfeff") else None
        known = flags[command] if command else set().union(*flags.values(), MORE_FLAGS)
        assert not unknown_flags(f" {code}", known), f"{page}: {code}"


def unknown_flags(line, known):
    """The flags of a command line but those known, and their negations."""
    flags = re.findall(r"(?<=\s--)[a-z_]+", line)
    return [flag for flag in flags if not {flag, flag.removeprefix("no")} & known]


def test_the_readme_is_short():
    assert len(text_of("README.md").splitlines()) <= 150


def test_tables_of_presets():
    import tfeff
    from tfeff.encoders.preset_table import preset_table

    assert preset_table() in text_of("docs/PRESETS.md")
    table = text_of("README.md").split("| system | presets | paper |")[1]
    rows = table.split("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(tfeff.encoders.presets()), "README: presets"


def test_tables_of_layers_attentions_and_objectives():
    import tfeff
    from tfeff.encoders.attentions import _REGISTRY

    text = text_of("docs/LAYERS.md")
    rows = text.split("| layer | what it computes |")[1].split("\n\n")[0]
    named = [name for row in rows.splitlines() for name in row.split("|")[1:2]]
    layers = [name for cell in named for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(layers) == sorted(tfeff.layers.__all__), "LAYERS.md: table of layers"
    text = text_of("docs/ENCODERS.md")
    rows = text.split("| argument | choices |")[1].split("\n| `feedforward`")[0]
    named = set(re.findall(r'`"(\w+)"`', rows))
    # Other tests of this process may have registered some of their own.
    own = {k for k, v in _REGISTRY.items() if v.__module__.startswith("tfeff.")}
    assert named == own, "ENCODERS.md: choices of `attention`"
    rows = text_of("docs/PRETRAINING.md").split("| name | model |")[1].split("\n\n")[0]
    models = {row.split("|")[2].strip(" `") for row in rows.splitlines()[2:]}
    assert models <= {*tfeff.objectives.__all__}
    named = {name for name in re.findall(r'^\| `"(\w+)"`', rows, re.MULTILINE)}
    assert named <= {*tfeff.objectives.names()}


def _ablations():
    text = text_of("docs/ENCODERS.md")
    table = text.split("| preset | overrides | row | parameters |")[1].split("\n\n")[0]
    rows = [row.strip("|").split("|") for row in table.splitlines()[2:]]
    return [
        (*re.findall(r"`([^`]*)`", a + b), float(d.split("M")[0]))
        for a, b, _, d in rows
    ]


@pytest.mark.slow
@pytest.mark.parametrize("row", _ablations(), ids=lambda row: f"{row[0]}, {row[1]}")
def test_rows_of_the_papers_have_the_sizes_that_the_page_says(row):
    import tfeff

    preset, *overrides, millions = row
    encoder = tfeff.encoders.build(preset, **eval(f"dict({''.join(overrides)})"))
    assert round(encoder.count_params() / 1e6, 1) == millions
