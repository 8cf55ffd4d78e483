"""Doors to other libraries. Each is imported by name, and only then needs the library that it opens to."""
