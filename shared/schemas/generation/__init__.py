"""What the generation service is asked, and what it answers."""
