"""The moderation console: a page on which people ask about texts and files."""
