"""The languages in which results are put into words: a catalogue of sentences for each."""
