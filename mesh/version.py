"""The one place that names the release."""

__version__ = "0.1.0"
