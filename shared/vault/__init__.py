"""Sealed records and the stores that hold them; knows neither keys nor tokens."""
