"""The job builder: `distrain_nb.form()` and `%distrain form`."""

from distrain_nb.ui.form.builder import Form, form

__all__ = ["Form", "form"]
