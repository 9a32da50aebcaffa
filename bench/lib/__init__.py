"""Shared by the figures."""
