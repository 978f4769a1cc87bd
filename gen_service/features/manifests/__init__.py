"""What says openly that a model wrote a text: labels, `AIGC` metadata, C2PA manifests."""
