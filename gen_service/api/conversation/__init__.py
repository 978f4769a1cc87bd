"""From the messages of a conversation to token ids."""
