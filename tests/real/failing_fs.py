"""A file system whose daemon a test may stop: then every access hangs, as on a dead disk.

Usage: failing_fs.py BACKING MOUNTPOINT. Passes everything on to BACKING; all belongs to uid 1000.
A process that reads the file `hang` waits for a daemon that has stopped itself: in state D, in which
KILL does not end it. While BACKING.freeze exists, the same happens to a process that syncs a file:
like a disk that fails in the middle of a write.
"""

import errno
import os
import signal
import sys

from fusepy import FUSE, FuseOSError, Operations

HANG = "/hang"


class Passthrough(Operations):
    def __init__(self, root):
        self.root = root

    def at(self, path):
        return self.root + path

    def getattr(self, path, fh=None):
        stat = os.lstat(self.at(path))
        keys = ("st_atime", "st_ctime", "st_mode", "st_mtime", "st_nlink", "st_size")
        return {key: getattr(stat, key) for key in keys} | {"st_uid": 1000, "st_gid": 1000}

    def readdir(self, path, fh):
        return [".", ".."] + os.listdir(self.at(path))

    def open(self, path, flags):
        return os.open(self.at(path), flags)

    def create(self, path, mode, fi=None):
        return os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)

    def read(self, path, size, offset, fh):
        if path == HANG:
            os.kill(os.getpid(), signal.SIGSTOP)
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self.at(path), length)

    def fsync(self, path, datasync, fh):
        if os.path.exists(self.root + ".freeze"):
            os.kill(os.getpid(), signal.SIGSTOP)
        os.fsync(fh)

    def fsyncdir(self, path, datasync, fh):
        return 0

    def flush(self, path, fh):
        # The kernel never asks again. For its answer a process waits even after KILL, when it ends
        # with a file open; a disk has nothing like it.
        raise FuseOSError(errno.ENOSYS)

    def release(self, path, fh):
        os.close(fh)

    def rename(self, old, new):
        os.rename(self.at(old), self.at(new))

    def unlink(self, path):
        os.unlink(self.at(path))

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def mknod(self, path, mode, dev):
        os.mknod(self.at(path), mode, dev)

    def chmod(self, path, mode):
        os.chmod(self.at(path), mode)

    def chown(self, path, uid, gid):
        return 0

    def utimens(self, path, times=None):
        os.utime(self.at(path), times)

    def __call__(self, op, *args):
        if not hasattr(self, op):
            raise FuseOSError(errno.ENOSYS)
        return super().__call__(op, *args)


if __name__ == "__main__":
    backing, mountpoint = sys.argv[1:]
    FUSE(Passthrough(backing), mountpoint, foreground=True, nothreads=True, allow_other=True)
