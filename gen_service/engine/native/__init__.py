"""The small operations of a pass on a CPU, in C: compiled where a compiler is, else torch's own are used."""
