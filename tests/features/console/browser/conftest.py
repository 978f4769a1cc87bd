"""The fixtures of pages in a browser."""

from tests.browser.conftest import *
