"""The paper's own three ways to look for a mark, for whoever compares: direct, aligned, localized."""
