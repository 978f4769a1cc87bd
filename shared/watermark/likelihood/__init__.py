"""The likelihood ratio of marked over unmarked text, along all ways in which it may have been edited."""
