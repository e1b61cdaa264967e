"""The command line: what people type, and the text and exit codes that come back."""
