"""The keys of the watermark: their versions, who knows them, and their life cycle."""
