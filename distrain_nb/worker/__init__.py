"""Code that travels to where the ranks run, and starts them there.

Standard library only, Python 3.8 and later, no import of the rest of the package: the folder is
copied into containers as it is. The formats that it writes (status, log, values) are read by the
rooms above.
"""
