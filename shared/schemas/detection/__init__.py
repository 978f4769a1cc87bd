"""What the detection service is asked and answers."""
