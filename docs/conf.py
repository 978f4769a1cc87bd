"""The site's build: `make docs` (Sphinx, MyST, Furo; docs/adr/0086-documentation-site.md)."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

DOCS = Path(__file__).parent

project = "TTMark"
project_copyright = "the TTMark authors, Apache-2.0"
extensions = ["myst_parser", "sphinx_external_toc"]
external_toc_path = "navigation.yml"
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
nitpicky = True
html_theme = "furo"
html_title = "TTMark"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]


class BothLooks(SphinxTransform):
    """Shows `name-light.png` by day and, where there is one, `name-dark.png` by night."""

    default_priority = 200  # before images are collected

    def apply(self, **_: Any) -> None:
        """Puts the dark picture behind the light one; Furo shows one of them."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            dark = image["uri"].replace("-light.", "-dark.")
            if dark != image["uri"] and (folder / dark).is_file():
                twin = image.deepcopy()
                twin["uri"] = dark
                image["classes"].append("only-light")
                twin["classes"].append("only-dark")
                image.parent.insert(image.parent.index(image) + 1, twin)


def name_results(_: Sphinx, docname: str, source: list[str]) -> None:
    """A results page that an experiment wrote begins with a table: it is called by its file's name."""
    if docname.startswith("results/") and not source[0].startswith("# "):
        source[0] = f"# {docname.removeprefix('results/')}\n\n{source[0]}"


def name_folders(
    _: Sphinx, env: BuildEnvironment, node: nodes.Element, text: nodes.Element
) -> nodes.Element | None:
    """A folder of the repository, which the site does not hold, is named without a link.

    What is no folder stays unresolved, which ends the build.
    """
    folder = (Path(env.doc2path(node["refdoc"])).parent / str(node["reftarget"])).resolve()
    inside = folder.is_relative_to(DOCS.parent)
    return text if inside and folder.is_dir() else None


def setup(app: Sphinx) -> None:
    """What this site adds to Sphinx."""
    app.add_transform(BothLooks)
    app.connect("source-read", name_results)
    app.connect("missing-reference", name_folders)
