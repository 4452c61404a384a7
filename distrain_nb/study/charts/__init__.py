"""The charts of a study, drawn for documents and pages alike."""
