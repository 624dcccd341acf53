"""The version of this package: said here, so that whatever states it need not know the public interface."""

__version__ = "1.0.0"
