"""The formats of exported parts: the content of every file is planned before any file is written."""
