"""The site's build: `make docs` (Sphinx, MyST, Furo)."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

DOCS = Path(__file__).parent
LISTED = ("adr", "runbooks")  # folders whose README lists their pages

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


class NamedFolders(SphinxTransform):
    """Names a folder of the repository, which the site does not hold, without a link to it."""

    default_priority = 200  # before references are resolved

    def apply(self, **_: Any) -> None:
        """A target that is no folder stays, and ends the build if it is no page or file either."""
        page = Path(self.env.doc2path(self.env.docname))
        for link in list(self.document.findall(addnodes.pending_xref)):
            if (page.parent / str(link["reftarget"])).is_dir():
                link.replace_self(link.children)


def complete(_: Sphinx, docname: str, source: list[str]) -> None:
    """Adds what a page of the repository need not say: the list of a folder's pages, and a title.

    A results page that an experiment wrote begins with a table, and is called by its file's name.
    """
    folder, _, name = docname.rpartition("/")
    if folder in LISTED and name == "README":
        pages = [page for page in sorted((DOCS / folder).glob("*.md")) if page.stem != name]
        source[0] += "\n" + "".join(f"- [{_title(page)}]({page.name})\n" for page in pages)
    elif folder == "results" and not source[0].startswith("# "):
        source[0] = f"# {name}\n\n{source[0]}"


def allow_listed(app: Sphinx, _: nodes.document) -> None:
    """Keeps the pages of such a list out of the navigation: a hundred entries slow every page down."""
    if Path(app.env.docname).parent.name in LISTED:
        app.env.metadata[app.env.docname]["orphan"] = ""


def _title(page: Path) -> str:
    return page.read_text().partition("\n")[0].removeprefix("# ")


def setup(app: Sphinx) -> dict[str, bool]:
    """What this site adds to Sphinx."""
    app.add_transform(BothLooks)
    app.add_transform(NamedFolders)
    app.connect("source-read", complete)
    app.connect("doctree-read", allow_listed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
