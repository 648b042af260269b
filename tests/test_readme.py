"""The README's code runs as it stands, in its order, in an empty folder."""

import re

import pytest

from tests.checks.pages import REPOSITORY, printed_by, python_blocks


def test_code_of_the_readme(tmp_path):
    blocks = python_blocks("README.md")
    assert len(blocks) == 10
    printed = printed_by(blocks, tmp_path)
    for expected in (
        "(2, 2)",
        "(2, 9, 512) 3",
        "'shatter_base'",
        "(2, 128)",
        "(1, 700, 128)",
        "\nWeather\n",
    ):
        assert expected in printed, printed
    assert "b''" in printed  # The text without a mask has no filling.


def test_code_of_contributing(tmp_path):
    blocks = python_blocks("CONTRIBUTING.md")
    assert len(blocks) == 3
    code = [*blocks, "print(encoder(encoder.input)['sequence_output'].shape)"]
    code.append("print(tfeff.datasets.names()[-1], tfeff.objectives.get('many_masks'))")
    printed = printed_by(code, tmp_path)
    assert "(None, None, 128)\nForecast PretrainingObjective" in printed


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_files_that_pages_name_exist(page):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert (REPOSITORY / target).exists(), target
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for command in set(re.findall(r"make ([a-z-]+)", text)):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_presets_and_layers_that_the_readme_names_exist():
    import tfeff
    from tfeff.encoders.attentions import _REGISTRY
    from tfeff.encoders.preset_table import preset_table

    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert preset_table() in text
    rows = text.split("| layer | what it computes |")[1].split("\n\n")[0]
    named = [name for row in rows.splitlines() for name in row.split("|")[1:2]]
    layers = [name for cell in named for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(layers) == sorted(tfeff.layers.__all__), "README: table of layers"
    rows = text.split("| argument | choices |")[1].split("\n| `feedforward`")[0]
    named = set(re.findall(r'`"(\w+)"`', rows))
    # Other tests of this process may have registered some of their own.
    own = {k for k, v in _REGISTRY.items() if v.__module__.startswith("tfeff.")}
    assert named == own, "README: choices of `attention`"


def _ablations():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    table = text.split("| preset | overrides | row | parameters |")[1].split("\n\n")[0]
    rows = [row.strip("|").split("|") for row in table.splitlines()[2:]]
    return [
        (*re.findall(r"`([^`]*)`", a + b), float(d.split("M")[0]))
        for a, b, _, d in rows
    ]


@pytest.mark.slow
@pytest.mark.parametrize("row", _ablations(), ids=lambda row: f"{row[0]}, {row[1]}")
def test_ablations_of_the_readme_have_the_sizes_that_it_says(row):
    import tfeff

    preset, *overrides, millions = row
    encoder = tfeff.encoders.build(preset, **eval(f"dict({''.join(overrides)})"))
    assert round(encoder.count_params() / 1e6, 1) == millions
