"""Helpers that every part of the kit may import; they import no other part."""
