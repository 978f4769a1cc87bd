"""What all readers share: the text that is taken out, its layout and encoding, archives."""
