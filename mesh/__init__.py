"""Mesh: worker meshes without a broker.

Importing this package is cheap on purpose: nothing but the version is loaded, so that
``mesh --help`` starts as fast as the interpreter allows.
"""

from mesh.version import __version__

__all__ = ["__version__"]
