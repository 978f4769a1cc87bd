"""Files of word processors."""
