"""Specifications of studies: parameters, goals and search, in text and the forms of clouds."""
