"""Where sealed records lie: SQLite or Redis."""
