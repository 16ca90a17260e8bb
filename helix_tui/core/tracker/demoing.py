"""``helix-ddx demo-workspace DIR``: build the demo project and say where it is."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from helix_tui.core.tracker.demo import DemoError, build_demo
from helix_tui.core.tracker.git import GitError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``demo-workspace`` understands."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that is absent or empty")
    parser.add_argument("--era", choices=("april", "head"), default=os.environ.get("HELIX_DDX_ERA", "head"))


def run(args: argparse.Namespace) -> int:
    """Build it and print one JSON object."""
    try:
        workspace = build_demo(args.folder, args.era)
    except (DemoError, GitError) as error:
        sys.stderr.write(f"helix-ddx demo-workspace: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"helix-ddx demo-workspace: {error.filename}: {error.strerror}\n")
        return 1
    sys.stdout.write(json.dumps(workspace.to_json(), indent=2) + "\n")
    return 0
