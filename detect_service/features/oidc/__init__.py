"""People sign in at their company's OpenID provider."""
