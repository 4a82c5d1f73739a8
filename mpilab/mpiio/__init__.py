"""Matrices in files, the kernels that read them, and Cannon's product.

In: matrix files (`files`). Out: how each reader asks for its part, and how long that takes
(`readers`); the product, stage by stage (`cannon`).
"""
