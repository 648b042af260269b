"""The reference: every public name of every public package, and every command.

The pages are made from the packages' `__all__`, so that none can be forgotten.
"""

import importlib
import re

import tfeff

PLACE = "reference/{}.md"


def packages():
    """The public packages."""
    return sorted(name for name in tfeff.__all__ if not name.startswith("_"))


def public_names(package):
    """From the public names of a package to the objects' own paths."""
    home = importlib.import_module(f"tfeff.{package}")
    objects = {name: getattr(home, name) for name in home.__all__}
    return {
        name: f"{found.__module__}.{found.__qualname__}"
        for name, found in sorted(objects.items(), key=lambda item: item[0].lower())
    }


def pages():
    """The Markdown of all pages, by their paths in the site."""
    homes, made = {}, {}
    # A name that a package has from one above it in this list is told there.
    for package in sorted(packages(), key=lambda name: name == "convert"):
        made[PLACE.format(package)] = page_of(package, homes)
    made[PLACE.format("commands")] = commands()
    made[PLACE.format("index")] = overview()
    return made


def page_of(package, homes):
    """The page of a package; `homes` are objects' paths with their public names."""
    module = importlib.import_module(f"tfeff.{package}")
    lines = [f"# tfeff.{package}", module.__doc__.strip()]
    for name, path in public_names(package).items():
        public = f"tfeff.{package}.{name}"
        if path in homes:
            lines.append(f"## {name}\n\nThe same as [`{homes[path]}`][{homes[path]}].")
            continue
        homes[path] = public
        options = f"    options:\n      heading: {name}\n      toc_label: {name}"
        lines.append(f"[](){{#{public}}}\n\n::: {path}\n{options}")
    return "\n\n".join(lines) + "\n"


def overview():
    """The packages, each with its first sentence."""
    rows = ["| package | what is in it | names |", "|---|---|---|"]
    for package in packages():
        first = importlib.import_module(f"tfeff.{package}").__doc__.split("\n\n")[0]
        first, count = " ".join(first.split()), len(public_names(package))
        rows.append(f"| [`tfeff.{package}`]({package}.md) | {first} | {count} |")
    rows.append("\n[The commands](commands.md) with all their flags.")
    return "# Reference\n\n" + "\n".join(rows) + "\n"


def commands():
    """What every command prints for `--help`, and the papers' settings."""
    from tfeff.command import flags
    from tfeff.command.configs import table
    from tfeff.command.main import COMMANDS, _load

    lines = ["# Commands", "What `tfeff COMMAND --help` prints."]
    for name, command in sorted(COMMANDS.items()):
        usage = flags.usage(name, _load(command.settings))
        lines.append(f"## tfeff {name}\n\n```text\n{usage}\n```")
    lines.append(f"## Configurations\n\nFor `--config=NAME`:\n\n{table()}")
    return "\n\n".join(lines) + "\n"


def on_files(files, config):
    """Adds the pages."""
    from mkdocs.structure.files import File

    for place, markdown in pages().items():
        files.append(File.generated(config, place, content=markdown))
    return files


def on_page_markdown(markdown, page, config, files):
    """Makes names of the library in a page's text links to the reference."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return linked(markdown, set(_all_names()))


def _all_names():
    return [f"tfeff.{p}.{name}" for p in packages() for name in public_names(p)]


def linked(markdown, names):
    """The page with links from code to the reference, but of headings and blocks."""

    def link(match):
        name = re.match(r"[\w.]+", match[1])[0]
        name = ".".join(name.split(".")[:3])
        return f"[{match[0]}][{name}]" if name in names else match[0]

    # What is neither in a fence, nor in a heading, nor a link's text already.
    pattern = re.compile(r"(?<!\[)`(tfeff\.\w+\.\w+[^`\n]*)`(?!\])")
    apart = re.compile(r"(^```.*?^```$|^#[^\n]*$)", re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith(("```", "#")) else pattern.sub(link, part)
        for part in apart.split(markdown)
    )
