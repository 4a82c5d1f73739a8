"""Matrices in files: their formats, how they are spread over ranks, and Cannon's product."""
