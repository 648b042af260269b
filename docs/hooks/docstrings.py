"""What the library's docstrings have beside Google's sections, in Markdown."""

import re
import textwrap

import griffe

_BLOCK = r"\n((?:(?: {4}.*)?\n?)+)"


class Docstrings(griffe.Extension):
    """Rewrites docstrings when griffe has read them."""

    def on_object(self, *, obj, **kwargs):
        """Rewrites the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = in_markdown(obj.docstring.value)


def in_markdown(text):
    """A docstring with its further sections, and examples, as Markdown."""
    text = re.sub(rf"^Call arguments:{_BLOCK}", _arguments, text, flags=re.MULTILINE)
    text = re.sub(rf"^Reference:{_BLOCK}", _reference, text, flags=re.MULTILINE)
    text = re.sub(r"^(Reference|Examples?): ", r"**\1:** ", text, flags=re.MULTILINE)
    text = re.sub(r"^(Examples?):$\n*", r"**\1**\n\n", text, flags=re.MULTILINE)
    # A doctest lasts until an empty line.
    return re.sub(
        r"^>>> (?:.+\n?)+",
        lambda match: f"```pycon\n{match[0].rstrip()}\n```\n",
        text,
        flags=re.MULTILINE,
    )


def _arguments(match):
    items = re.split(r"\n(?=\S)", textwrap.dedent(match[1]).strip())
    lines = [re.sub(r"^([\w, *]+): ", r"- **`\1`** – ", item) for item in items]
    return "**Call arguments**\n\n" + "\n".join(lines) + "\n\n"


def _reference(match):
    return f"**Reference**\n\n{textwrap.dedent(match[1]).strip()}\n\n"
