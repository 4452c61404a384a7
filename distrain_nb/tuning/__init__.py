"""What a study tries: its parameters, goals and search, in text and in the forms of the clouds."""
