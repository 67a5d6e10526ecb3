"""A memory limit for one process and what it starts: cgroup v1 or v2, whichever is writable.

    with Cage(bytes) as cage:
        subprocess.Popen(..., preexec_fn=cage.enter)
        cage.peak()     # bytes, page cache and all

Cage.refused() says in a word why there can be none.
"""
import os
import time

def _mounts():
    """(v1 memory mount, v2 mount), None for what there is not."""
    v1 = v2 = None
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.rstrip("\n").split(" - ", 1)
            point, kind, options = left.split()[4], right.split()[0], right.split()[2]
            if kind == "cgroup" and "memory" in options.split(","):
                v1 = point
            elif kind == "cgroup2":
                v2 = point
    return v1, v2


def _own(version):
    with open("/proc/self/cgroup") as f:
        for line in f:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            if (version == 2 and number == "0") or (version == 1 and "memory" in controllers.split(",")):
                return path.strip("/")
    return ""


def _put(path, text):
    with open(path, "w") as f:
        f.write(str(text))


class Cage:
    def __init__(self, limit):
        self.limit = limit
        self.dir = None
        why = []
        for attempt in (self._v1, self._v2):
            try:
                attempt()
                return
            except OSError as e:
                why.append(e.strerror or str(e))
                self._remove()
        raise OSError("no cgroup can be made here: " + "; ".join(why))

    @staticmethod
    def refused():
        try:
            Cage(1 << 30).close()
            return None
        except OSError as e:
            return str(e)

    def _v1(self):
        v1, _ = _mounts()
        if not v1:
            raise OSError("no v1 hierarchy for memory")
        self.dir = os.path.join(v1, "rnbd-gate-%d" % os.getpid())
        os.makedirs(self.dir, exist_ok=True)
        _put(self.dir + "/memory.limit_in_bytes", self.limit)
        self.peak_file, self.reset_text = "memory.max_usage_in_bytes", "0"

    def _v2(self):
        _, v2 = _mounts()
        if not v2:
            raise OSError("no v2 hierarchy")
        # A group with processes in it can give no controller to its children: beside the own one, then at the top.
        for base in (os.path.dirname(_own(2)), ""):
            parent = os.path.join(v2, base)
            with open(parent + "/cgroup.subtree_control") as f:
                if "memory" not in f.read().split():
                    continue
            self.dir = os.path.join(parent, "rnbd-gate-%d" % os.getpid())
            os.makedirs(self.dir, exist_ok=True)
            _put(self.dir + "/memory.max", self.limit)
            self.peak_file, self.reset_text = "memory.peak", None
            return
        raise OSError("no v2 group gives memory to its children")

    def enter(self):
        """In the child, before exec."""
        _put(self.dir + "/cgroup.procs", os.getpid())

    def peak(self):
        try:
            with open(os.path.join(self.dir, self.peak_file)) as f:
                return int(f.read())
        except (OSError, ValueError):
            return None

    def _remove(self):
        for _ in range(50):
            if not self.dir or not os.path.isdir(self.dir):
                return
            try:
                os.rmdir(self.dir)
                return
            except OSError:
                time.sleep(0.1)

    def close(self):
        self._remove()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def forget(path):
    """Drops the page cache of a file, so that the next run reads it."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
