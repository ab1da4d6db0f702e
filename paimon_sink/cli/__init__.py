"""The ``pwc`` command: prints, never decides."""
