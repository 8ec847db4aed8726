"""What the measure cannot do."""


class MeasureError(ValueError):
    """Something that was given cannot be used; the message begins with its name."""
