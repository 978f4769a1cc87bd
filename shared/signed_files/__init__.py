"""Cases: the answer to a check in a file that a service signed, for people who were not there."""
