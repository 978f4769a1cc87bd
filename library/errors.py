"""What the library raises beside ValueError."""


class KeyDetectsOnly(ValueError):
    """A key that was exported from a key store finds texts and marks none."""


class TokenizerUnknown(ValueError):
    """A text cannot be read: nobody said which model's tokenizer the key's texts have."""
