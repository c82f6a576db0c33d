"""Sweeps on disk: cells named by what they simulate, each in files that are whole or not there.

`docs/sweeps.md` describes the directory. `sweep` fills it, `status` watches, `verify` checks,
`query` asks, `load` reads it as a result.
"""
