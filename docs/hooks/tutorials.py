"""Runs the notebooks of `docs/tutorials`, and makes pages of them and their outputs.

With `EXECUTE_NOTEBOOKS=false` the pages have no outputs, and are there at once.
"""

import base64
import os
import tempfile
import time

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

_log = get_plugin_logger("tutorials")


def on_files(files, config):
    """Adds a page for every notebook, and its figures."""
    import nbformat

    for file in [f for f in files if f.src_uri.endswith(".ipynb")]:
        notebook = nbformat.read(file.abs_src_path, as_version=4)
        if os.environ.get("EXECUTE_NOTEBOOKS", "true") == "true":
            start = time.monotonic()
            _execute(notebook)
            _log.info(f"{file.src_uri} ran in {time.monotonic() - start:.0f} s")
        place = file.src_uri.removesuffix(".ipynb")
        markdown, figures = page_of(notebook, place.rpartition("/")[2])
        files.append(File.generated(config, f"{place}.md", content=markdown))
        for name, content in figures.items():
            folder = place.rpartition("/")[0]
            files.append(File.generated(config, f"{folder}/{name}", content=content))
    return files


def _execute(notebook):
    """Runs the notebook in a folder of its own; an error in a cell ends the build."""
    import nbclient

    # What TensorFlow tells of the machine belongs to no tutorial.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            notebook,
            timeout=None,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        ).execute()


def page_of(notebook, name):
    """The notebook's Markdown, and its figures by their file names."""
    parts, figures = [], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        printed = "".join(map(_text, cell.get("outputs", []))).strip("\n")
        if printed:
            parts.append(f"```text\n{printed}\n```")
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                file = f"{name}_{len(figures)}.png"
                figures[file] = base64.b64decode(output["data"]["image/png"])
                parts.append(f"![The figure that this cell draws]({file})")
    parts.append(f'<a href="../{name}.ipynb" download>The notebook of this page.</a>')
    return "\n\n".join(parts) + "\n", figures


def _text(output):
    """What an output prints, without what libraries tell of themselves."""
    data = output.get("data", {})
    if output.get("name") == "stderr" or "image/png" in data:
        return ""
    lines = (output.get("text") or data.get("text/plain", "")).splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith("INFO:"))
