"""``curation hoot``: a command of another package."""

from curation.cli.output import Answer

GROUP = "Birds"
SUMMARY = "count the hoots of an owl"


def run(*, hoots: int = 1) -> Answer:
    """Count the hoots of an owl.

    Parameters
    ----------
    hoots
        how often the owl hoots
    """
    return Answer({"hoots": hoots}, [f"{hoots} hoots"])
