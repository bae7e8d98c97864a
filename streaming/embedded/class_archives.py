"""Archives of the classes that a program loads, which its JVM maps at its next start (JEP 350).

Half of what the start of a broker takes is to load its classes. Who starts many names a folder in
HELMSTREAM_CLASS_ARCHIVES: the first JVM of a program that ends in order leaves an archive there,
which takes it a second, and later ones map it. An archive is good for one Java and one class path.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.embedded.java import Java

ARCHIVES_VARIABLE = "HELMSTREAM_CLASS_ARCHIVES"
# Else there is a line for each class that cannot be archived, hundreds of them.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """What one run of a program has to do with its archive.

    options: for its JVM, none where nothing is archived. left: where it leaves an archive at its
    end, to be put at path; None when it leaves none.
    """

    options: Sequence[str] = ()
    left: Path | None = None
    path: Path | None = None

    @classmethod
    def of(
        cls, java: Java, class_path: str, program: str, env: Mapping[str, str] | None = None
    ) -> ClassArchive:
        """Return what the next run of a program maps or leaves; program: a name for it."""
        folder = (os.environ if env is None else env).get(ARCHIVES_VARIABLE)
        if not folder:
            return cls()
        place = hashlib.sha256(class_path.encode()).hexdigest()[:8]
        path = Path(folder) / f"{program}-{place}-java-{java.version}.jsa"
        if path.exists():
            return cls((f"-XX:SharedArchiveFile={path}", *_QUIET))
        path.parent.mkdir(parents=True, exist_ok=True)
        left = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
        return cls((f"-XX:ArchiveClassesAtExit={left}", *_QUIET), left, path)

    @property
    def mapping(self) -> Sequence[str]:
        """The options for a JVM that maps the archive, if it is there, and leaves none."""
        return self.options if self.left is None else ()

    def keep(self) -> None:
        """Let later runs map what this one has left; to be called when its JVM has ended."""
        if self.path is not None and self.left is not None and self.left.exists():
            self.left.replace(self.path)
