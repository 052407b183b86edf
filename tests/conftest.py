"""What holds for every test.

Examples are searched without a deadline: a slow machine fails no test.
"""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("support")

settings.register_profile("workmate", deadline=None, print_blob=True)
settings.load_profile("workmate")
