"""A mounted Secret: the system calls of kubelet's AtomicWriter, in its order."""

import os
import shutil
import time


class Volume:
    def __init__(self, mount):
        self.mount, self.generation = mount, 0
        mount.mkdir()

    def write(self, text):
        """The next generation, beside the present one."""
        self.generation += 1
        new = self.mount / f"..2026_11_21_09_00_00.{self.generation}"
        new.mkdir()
        (new / "elasticsearch.yml").write_text(text)
        if self.generation == 1:
            os.symlink("..data/elasticsearch.yml", self.mount / "elasticsearch.yml")
        os.symlink(new.name, self.mount / "..data_tmp")
        return new

    def swap(self):
        """Makes the new generation visible."""
        data = self.mount / "..data"
        old = os.readlink(data) if data.is_symlink() else None
        os.rename(self.mount / "..data_tmp", data)
        swapped = time.monotonic()
        if old:
            shutil.rmtree(self.mount / old)
        return swapped
