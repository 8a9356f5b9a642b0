"""The version of the package, which is the program's."""

VERSION = "0.1.0"
