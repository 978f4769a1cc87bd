"""Changes sampled lines of the code, one at a time, and looks which tests notice."""
