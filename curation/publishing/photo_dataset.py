"""`PhotoDataset`: a published table with photos of one's own disk, for PyTorch's data loaders and without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.errors import MissingFileError
from curation.sources.photos import BrokenPhotoError, PhotoFolder, decode_photo, read_photo

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN = 3


class PhotoDataset:
    """Rows of a published table, each with its photo: a map-style dataset, which is all that a data loader needs.

    A photo is found by its ``file_name``, by the native half of its ``image_id``, or by the last part of either,
    anywhere below the folder. PyTorch is not needed, and an object can be sent to the workers of a data loader.

    Parameters
    ----------
    rows : sequence of mapping
        With ``image_id``; a split of ``datasets.load_dataset``, or a list of dicts.
    photos : Path, or mapping of str to Path
        The folder of the photos, or one by the namespace of the ids (``coco``, ``voc2007``).
    transform : callable, optional
        Takes the picture (``PIL.Image``, RGB, stored pixels) and the row, and gives what is wanted instead.

    Raises
    ------
    MissingFileError
        A folder does not exist, or a photo is in none: the message says how many and names the first.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> folder = TemporaryDirectory()
    >>> Image.new("RGB", (4, 3)).save(Path(folder.name) / "000000000139.jpg")
    >>> rows = [{"image_id": "coco:000000000139", "objects": [{"bbox": [0, 0, 2, 2], "category_id": 7}]}]
    >>> dataset = PhotoDataset(rows, Path(folder.name), lambda image, row: (image.size, len(row["objects"])))
    >>> len(dataset), dataset[0]
    (1, ((4, 3), 1))
    >>> folder.cleanup()

    With PyTorch, from a pulled repository::

        rows = datasets.load_dataset("pulled", "elephant-val2017", split="wilderness")
        dataset = PhotoDataset(rows, {"coco": Path("val2017")}, transform)
        loader = torch.utils.data.DataLoader(dataset, batch_size=8, collate_fn=list)
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        photos: Path | Mapping[str, Path],
        transform: Callable[[Image, Mapping[str, Any]], Any] | None = None,
    ) -> None:
        self.rows = rows
        self.transform = transform
        self.paths = _paths(rows, photos)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        """Return the picture and the row at a place, or what the transform makes of them.

        Raises
        ------
        MissingFileError
            The photo cannot be read.
        """
        row = self.rows[index]
        path = self.paths[index]
        try:
            image = decode_photo(read_photo(path))
        except BrokenPhotoError as error:
            raise MissingFileError(f"A photo cannot be used: {error}", where=str(path)) from None
        return (image, row) if self.transform is None else self.transform(image, row)


def _paths(rows: Sequence[Mapping[str, Any]], photos: Path | Mapping[str, Path]) -> tuple[Path, ...]:
    roots = photos if isinstance(photos, Mapping) else {"": photos}
    folders = {namespace: PhotoFolder(Path(root)) for namespace, root in roots.items()}
    found: list[Path] = []
    missing: list[str] = []
    for row in rows:
        namespace, _, native = row["image_id"].partition(":")
        folder = folders.get(namespace, folders.get(""))
        path = None if folder is None else folder.find([row.get("file_name") or "", native])
        if path is None:
            missing.append(row["image_id"])
        else:
            found.append(path)
    if missing:
        more = ", …" if len(missing) > _SHOWN else ""
        raise MissingFileError(
            f"{len(missing)} of {len(rows)} photos are in none of the folders",
            where=", ".join(f"{name or 'all'}: {root}" for name, root in roots.items())[:300],
            expected="files named as the dataset names them, or by id",
            found=f"no {', '.join(missing[:_SHOWN])}{more}",
        )
    return tuple(found)
