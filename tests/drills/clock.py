"""A clock for one program and all that it starts: as far ahead or behind as a file says, from now on.

The machine's own clock stays. It is set as a person or a time server sets it: what counts from the start of
the machine (``CLOCK_MONOTONIC``) goes on as before.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *ahead;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_AHEAD");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *seen = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  if (seen != MAP_FAILED) ahead = seen;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(clock, at);
  if (!done && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *ahead;
  return done;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""


class Clock:
    """What a program reads as the time, once it was started with `words` before its own.

    Raises:
        OSError: there is no compiler here, or it cannot make the library.
    """

    def __init__(self, folder: Path) -> None:
        self._ahead, library = folder / "ahead", folder / "clock.so"
        (folder / "clock.c").write_text(SOURCE)
        compiler = shutil.which("cc")
        if compiler is None:
            raise OSError("no compiler here")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(folder / "clock.c"), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise OSError(f"the compiler cannot make it: {done.stderr[:300]}")
        self.set(0)
        self.words = ("env", f"LD_PRELOAD={library}", f"CLOCK_AHEAD={self._ahead}")

    def set(self, seconds: int) -> None:
        """Set it so many seconds ahead of the machine's, negative for behind."""
        with self._ahead.open("r+b" if self._ahead.exists() else "wb") as file:
            file.write(struct.pack("l", seconds))
