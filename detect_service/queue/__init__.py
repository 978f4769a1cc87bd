"""The queue of documents that a team looks at: who has seen, decided or reopened what."""
