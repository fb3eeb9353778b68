"""The version of the numerics, which every record notes: raise it when the bits of some question change."""

VERSION = 1
