"""XML inside of archives, from strangers."""

from lxml import etree

from ttmark.detect_service.extraction.unreadable_file import LimitExceeded, UnreadableFile


def parse_part(content: bytes, wrong: UnreadableFile) -> etree._Element:
    """The root of an XML part; entities stay unresolved, and nothing else is opened.

    Raises:
        UnreadableFile: `wrong`, where it is no XML.
        LimitExceeded: nested deeper than 256 levels, or a single text of more than 10 MB.
        MemoryError: the process may not have more memory.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise refused_limit(error) or wrong from None


def refused_limit(error: etree.XMLSyntaxError) -> Exception | None:
    """What the parser's own limits say of a document; None where it is simply wrong."""
    if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
        return MemoryError()
    if error.code != etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return None
    if "depth" in str(error):
        return LimitExceeded("The document is nested deeper than the limit of 256 levels.", "nesting")
    return LimitExceeded("A text of the document exceeds the limit of 10 MB.", "text")
