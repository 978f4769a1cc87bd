"""C2PA manifests inside of texts: signed statements of where a text comes from (C2PA 2.4, Annex A.8)."""
