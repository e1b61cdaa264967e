"""``python -m mesh`` is the same program as ``mesh``."""

from mesh.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
