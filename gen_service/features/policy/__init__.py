"""The marking policy: which requests are marked, and how."""
