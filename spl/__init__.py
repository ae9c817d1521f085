"""An append-only, content-addressed record store for evidence about agents."""

__version__ = "0.1.0"
