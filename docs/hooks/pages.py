"""Brings pages from outside of `docs` into the site, and mends the links between pages.

Links in pages lead to files of the repository, as code hosts read them. In the site a
page may lie elsewhere, and what is no page of it is named without a link.
"""

import configparser
import os
import posixpath
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# From folders and files of the repository to those of the site, in this order.
PLACES = {
    "README.md": "index.md",
    "benchmarks/results/README.md": "results/index.md",
    "benchmarks/results/": "results/",
    "docs/tutorials/README.md": "tutorials/index.md",
    "docs/": "",
    "": "",
}
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files, config):
    """Adds what lies outside of `docs`."""
    from mkdocs.structure.files import File

    for path in outside():
        place = in_site(path.relative_to(REPOSITORY).as_posix())
        files.append(File.generated(config, place, abs_src_path=str(path)))
    readme = files.get_file_from_path("tutorials/README.md")
    if readme:
        files.remove(readme)
        moved = File.generated(
            config, "tutorials/index.md", abs_src_path=readme.abs_src_path
        )
        files.append(moved)
    return files


def outside():
    """The files outside of `docs` that the site has."""
    found = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("benchmarks/results/**/*")]
    return [path for path in found if path.is_file()]


def on_page_markdown(markdown, page, config, files):
    """Mends the links of a page."""
    source = f"docs/{page.file.src_uri}"  # Of a page that a hook has made.
    if page.file.abs_src_path is not None:
        source = Path(page.file.abs_src_path).relative_to(REPOSITORY).as_posix()
    known = {file.src_uri for file in files}
    return mended(markdown, source, page.file.src_uri, known, repository_url())


def repository_url():
    """The repository's address, as the package's metadata say, or None."""
    settings = configparser.ConfigParser()
    settings.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    return settings.get("metadata", "url", fallback=None)


def in_site(path):
    """Where a file of the repository lies in the site's sources."""
    for start, place in PLACES.items():
        if path.startswith(start):
            return place + path.removeprefix(start)


def mended(markdown, source, place, known, repository_url=None):
    """The page with links as the site has them.

    Args:
        markdown: the text of the page.
        source: its path in the repository.
        place: its path in the site.
        known: the paths of all of the site's files.
        repository_url: where links to other files lead; `None`: nowhere.
    """

    def mend(match):
        image, text, target = match.groups()
        file, hash_, anchor = target.partition("#")
        if not file or "://" in file:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
        goal = in_site(path)
        if goal.endswith(".ipynb"):
            goal = goal.replace(".ipynb", ".md")
        if goal in known:
            relative = os.path.relpath(goal, posixpath.dirname(place) or ".")
            return f"{image}[{text}]({relative}{hash_}{anchor})"
        if repository_url:
            url = f"{repository_url.rstrip('/')}/blob/main/{path}"
            return f"{image}[{text}]({url}{hash_}{anchor})"
        return text

    return "".join(
        part if part.startswith("```") else _LINK.sub(mend, part)
        for part in _CODE.split(markdown)
    )
