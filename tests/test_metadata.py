"""Version, citation, workflows and supported Pythons are the same everywhere."""

import ast
import configparser
import re

import pytest
import yaml

import tfeff
from tests.checks.pages import REPOSITORY

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
WORKFLOWS = sorted(REPOSITORY.glob(".github/workflows/*.yml"))


def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser(interpolation=None)
    config.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    return config


def workflow(path) -> dict:
    # YAML 1.1 reads the key `on` as a truth value.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def test_one_version():
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", changelog, re.M
    )
    sections = re.findall(r"^## (.*)$", changelog, re.M)
    assert sections[0] == "[Unreleased]" and len(sections) == len(released) + 1
    newest = (released or re.findall(r"first release, (.*)\.$", changelog, re.M))[0]
    assert newest == tfeff.__version__
    assert setup_cfg()["metadata"]["version"] == "attr: tfeff.__version__"


def test_the_citation_names_the_version_and_the_papers():
    text = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    citation = yaml.safe_load(text)
    metadata = setup_cfg()["metadata"]
    assert citation["version"] == tfeff.__version__
    assert citation["license"] == metadata["license"]
    assert citation["repository-code"] == metadata["url"]
    papers = [reference["title"].split(":")[0] for reference in citation["references"]]
    assert papers == [
        "Shatter",
        "Improve Transformer Models with Better Relative Position Embeddings",
        "Blockwise Self-Attention for Long Document Understanding",
        "ConvBERT",
        "Optimized BERT Modifications",
    ]
    for reference in citation["references"]:
        assert reference["type"] and reference["year"]
        assert all(author["family-names"] for author in reference["authors"])


def test_supported_pythons_are_tested():
    config = setup_cfg()
    classifiers = config["metadata"]["classifiers"]
    said = re.findall(r"Python :: (3\.\d+)", classifiers)
    jobs = workflow(REPOSITORY / ".github" / "workflows" / "tests.yml")["jobs"]
    assert tuple(said) == PYTHONS
    assert tuple(jobs["quick"]["strategy"]["matrix"]["python"]) == PYTHONS
    beyond = f"3.{int(PYTHONS[-1].partition('.')[2]) + 1}"
    assert config["options"]["python_requires"] == f">={PYTHONS[0]},<{beyond}"
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert f"<= sys.version_info < ({beyond.replace('.', ', ')})" in makefile
    assert config["mypy"]["python_version"] == PYTHONS[0]
    for extra, needed in config["options.extras_require"].items():
        assert needed.split(), extra


def test_there_are_workflows_of_tests_docs_and_release():
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "tests"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_there_is(path):
    content = workflow(path)
    # Nothing may be written but by the jobs that say so.
    assert content["on"] and content["permissions"] == {"contents": "read"}
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    called = set()
    for job in content["jobs"].values():
        assert job["runs-on"] == "ubuntu-latest"
        assert set(job.get("needs", "").split()) <= set(content["jobs"])
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), step
            called |= set(re.findall(r"make ([a-z-]+)", step.get("run", "")))
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[\w./-]+", step.get("uses", "a/b@c"))
    assert called and called <= targets
    assert targets <= set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())


def test_files_are_of_the_oldest_python():
    """Newer syntax would only fail there."""
    oldest = tuple(map(int, PYTHONS[0].split(".")))
    folders = ("tfeff", "tests", "examples", "benchmarks")
    files = [path for name in folders for path in (REPOSITORY / name).glob("**/*.py*")]
    files = [path for path in files if path.suffix in (".py", ".pyi")]
    assert len(files) > 500
    for path in files:
        source = path.read_text(encoding="utf-8")
        ast.parse(source, filename=str(path), feature_version=oldest)
