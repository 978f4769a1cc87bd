"""How models write tool calls and reasoning: the tokens, and the values between them."""
