"""The addresses of the project, read where it is built: a fork's wheel leads to the fork."""

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Addresses(MetadataHookInterface):
    """Fills ``[project.urls]`` by the repository that a host's workflow runs in; elsewhere there are none to name."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses of documentation, source, changelog and issues."""
        host, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
        if not host or not name:
            return
        source = f"{host}/{name}"
        owner, _, repository = name.partition("/")
        metadata["urls"] = {
            "Documentation": f"https://{owner}.github.io/{repository}/",
            "Source": source,
            "Changelog": f"{source}/blob/main/CHANGELOG.md",
            "Issues": f"{source}/issues",
        }
