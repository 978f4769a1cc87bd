"""Keys that come from elsewhere or go there: `ttmark keys import` and `ttmark keys export`."""
