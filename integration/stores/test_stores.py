"""What every store promises, on the emulators; the module below has it by test."""

from tests.storage.test_store_conformance import *  # noqa: F403
