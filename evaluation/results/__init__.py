"""What is found of marked texts, ours and those of other systems, by today's detectors in one run."""
