from tests.browser.conftest import *
