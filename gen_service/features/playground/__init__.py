"""The playground: a page on which an answer is written before one's eyes, with its watermark."""
