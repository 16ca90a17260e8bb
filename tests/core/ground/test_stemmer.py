"""One language of snowballstemmer, for any thread."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from helix_tui.core.ground.text import stem_english

WORDS = ("running", "generalizations", "leases", "conflicted", "routing", "queue", "happily", "relational")
STEMS = ("run", "general", "leas", "conflict", "rout", "queue", "happili", "relat")

ONLY_ENGLISH = """
import sys
from helix_tui.core.ground.text import stem_english
assert stem_english("running") == "run"
print(sum(name.startswith("snowballstemmer") and name.endswith("_stemmer") for name in sys.modules))
import snowballstemmer
print(snowballstemmer.stemmer("german").stemWord("katzen"))
"""


def test_only_english_is_loaded_and_whoever_wants_the_rest_has_it() -> None:
    done = subprocess.run([sys.executable, "-c", ONLY_ENGLISH], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["1", "katz"]


def test_two_threads_do_not_mix_their_words() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: tuple(map(stem_english, WORDS)), range(300)))
    finally:
        sys.setswitchinterval(before)
    assert set(found) == {STEMS}
