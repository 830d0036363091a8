"""Readers on tiny files in the original formats: what goes in comes out."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import loadmat, savemat

import data_files
from scae.config import ConstellationDataConfig, ImageDataConfig
from scae.data import (
    check_data,
    from_arrays,
    image_source,
    list_data,
    load_images,
    load_points,
    point_source,
    scenes,
)
from scae.data.mat import read_mat
from scae.errors import ScaeError


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_idx(tmp_path: Path, zipped: bool, name: str) -> None:
    data_files.write_mnist(tmp_path, zipped=zipped, name=name)
    data = load_images(name, "train", tmp_path)
    images, labels = data_files.mnist_arrays(12)
    np.testing.assert_array_equal(data.images[:, 0], images)
    np.testing.assert_array_equal(data.labels, labels)
    assert "12 of 60000 images of 28x28x1" in data.summary
    both = load_images(name, "train+test", tmp_path)
    assert len(both) == 18 and both.split == "train+test"
    assert both.fingerprint != data.fingerprint
    assert data.fingerprint == load_images(name, "train", tmp_path).fingerprint


@pytest.mark.parametrize("compress", [True, False])
def test_svhn(tmp_path: Path, compress: bool) -> None:
    _, images = data_files.write_svhn(tmp_path, compress=compress)
    data = load_images("svhn", "train", tmp_path)
    np.testing.assert_array_equal(data.images.permute(0, 2, 3, 1), images)
    assert data.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_mat_reader_agrees_with_scipy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    variables = {
        "double": rng.standard_normal((3, 4)),
        "small": np.arange(3.0),
        "int16": rng.integers(-9, 9, (2, 3, 4)).astype(np.int16),
        "int64": np.array([[2**40, -1]]),
        "empty": np.zeros((0, 3)),
        "nested": {"a": np.eye(2), "b": {"c": np.array([[7]], np.uint8)}},
        "text": "skipped",
        "cell": np.array([[1, "a"]], dtype=object),
    }
    for compress in (True, False):
        path = tmp_path / "some.mat"
        savemat(path, variables, do_compression=compress)
        ours, theirs = read_mat(path), loadmat(path)
        assert set(ours) == {"double", "small", "int16", "int64", "empty", "nested"}
        for name in ("double", "small", "int16", "int64", "empty"):
            np.testing.assert_array_equal(ours[name], theirs[name])
        np.testing.assert_array_equal(ours["nested"]["a"], np.eye(2))
        assert ours["nested"]["b"]["c"] == 7


@pytest.mark.parametrize("zipped", [True, False])
def test_cifar10_batches_and_archive(tmp_path: Path, zipped: bool) -> None:
    folder = tmp_path / "cifar10"
    folder.mkdir()
    batches = {f"data_batch_{i}.bin": data_files.cifar_bytes(20, i) for i in range(1, 6)}
    name = "data_batch_1.bin" + (".gz" if zipped else "")
    first = batches["data_batch_1.bin"]
    (folder / name).write_bytes(gzip.compress(first) if zipped else first)
    partial = load_images("cifar10", "train", tmp_path)
    assert "20 of 50000" in partial.summary
    expected = np.frombuffer(first, np.uint8).reshape(-1, 3073)
    np.testing.assert_array_equal(partial.images.flatten(1), expected[:, 1:])
    np.testing.assert_array_equal(partial.labels, expected[:, 0])
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for member, data in batches.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{member}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    whole = load_images("cifar10", "train", tmp_path)
    assert len(whole) == 100 and torch.equal(whole.images[:20], partial.images)
    assert whole.classes[0] == "airplane"


def test_affnist_batches_file_and_zip(tmp_path: Path) -> None:
    folder = tmp_path / "affnist"
    second = data_files.write_affnist(folder / "test_batches" / "2.mat", seed=2)
    tenth = data_files.write_affnist(folder / "test_batches" / "10.mat", seed=10)
    data = load_images("affnist", "test", tmp_path)
    np.testing.assert_array_equal(data.images[:, 0], np.concatenate([second, tenth]))
    assert data.labels.tolist() == [0, 1, 2, 3, 4, 5, 6] * 2
    single = data_files.write_affnist(folder / "validation.mat", seed=3)
    np.testing.assert_array_equal(
        load_images("affnist", "validation", tmp_path).images[:, 0], single
    )
    with zipfile.ZipFile(folder / "training_batches.zip", "w") as archive:
        archive.write(folder / "validation.mat", "training_batches/1.mat")
    np.testing.assert_array_equal(load_images("affnist", "train", tmp_path).images[:, 0], single)


def test_folder_with_and_without_classes(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    pixels = [data_files.write_image(flat / f"{i}.png", seed=i) for i in range(3)]
    data = load_images(str(flat), "train")
    np.testing.assert_array_equal(data.images.permute(0, 2, 3, 1), np.stack(pixels))
    assert data.labels is None and data.files == ("0.png", "1.png", "2.png")
    assert data.split == "all" and len(load_images(str(flat), "train+test")) == 3
    classed = tmp_path / "classed"
    for name in ("b/2.png", "a/1.png", "b/1.png"):
        data_files.write_image(classed / name, mode="L")
    data = load_images(str(classed), "test")
    assert data.labels.tolist() == [0, 1, 1] and data.classes == ("a", "b")
    assert data.files == ("a/1.png", "b/1.png", "b/2.png") and data.images.shape[1:] == (1, 7, 9)
    split = tmp_path / "split"
    data_files.write_image(split / "train" / "only" / "1.png")
    data_files.write_image(split / "test" / "only" / "1.png", seed=1)
    assert len(load_images(str(split), "train+test")) == 2
    with pytest.raises(ScaeError, match="splits train, test"):
        load_images(str(split), "validation")


def test_folder_resizes_and_blends_transparency_over_black(tmp_path: Path) -> None:
    pixels = data_files.write_image(tmp_path / "a.png", (8, 8), "RGBA")
    data_files.write_image(tmp_path / "b.png", (20, 10), "RGB")
    data = load_images(ImageDataConfig(name=str(tmp_path), size=8))
    assert data.images.shape == (2, 3, 8, 8)
    blended = pixels[..., :3] * (pixels[..., 3:] / 255.0)
    np.testing.assert_allclose(data.images[0].permute(1, 2, 0), blended, atol=1)


def test_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (5, 6, 7)).astype(np.uint8)
    np.savez_compressed(tmp_path / "a.npz", images=grey, labels=np.arange(5))
    data = load_images(str(tmp_path / "a.npz"))
    np.testing.assert_array_equal(data.images[:, 0], grey)
    assert data.labels.tolist() == [0, 1, 2, 3, 4]
    np.save(tmp_path / "b.npy", np.asfortranarray(grey[..., None] / 255.0))
    np.testing.assert_array_equal(load_images(str(tmp_path / "b.npy")).images[:, 0], grey)
    colour = rng.integers(0, 256, (4, 3, 6, 7))
    np.testing.assert_array_equal(from_arrays(colour).images, colour)
    np.testing.assert_array_equal(from_arrays(colour.transpose(0, 2, 3, 1)).images, colour)
    np.savez(tmp_path / "c.npz", x_train=grey, y_train=np.ones((5, 1)), x_test=grey[:2])
    assert load_images(str(tmp_path / "c.npz"), "train").labels.tolist() == [1] * 5
    assert len(load_images(str(tmp_path / "c.npz"), "train+test")) == 7


def test_point_sets(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("scene,x,y,object\nb,0,0,1\na,5,5,0\nb,10,4,1\nb,0,10,0\n")
    data = load_points(table)
    assert data.presence.tolist() == [[1, 1, 1], [1, 0, 0]]
    torch.testing.assert_close(
        data.points[0], torch.tensor([[-1.0, -1.0], [1.0, -0.2], [-1.0, 1.0]])
    )
    assert (data.points[1] == 0).all()  # a single point has no range
    assert data.pattern_id.tolist() == [[1, 1, 0], [0, -1, -1]]
    points = np.random.default_rng(0).standard_normal((6, 4, 2))
    presence = np.ones((6, 4), np.float32)
    presence[:, 0], points[:, 0] = 0, np.nan
    np.savez(tmp_path / "points.npz", points=points, presence=presence)
    config = ConstellationDataConfig(name=str(tmp_path / "points.npz"))
    stored = scenes(config, 0, 4)
    assert len(stored) == 4 and stored.pattern_id is None and stored.points.isfinite().all()
    source = point_source(config, seed=1)
    again = point_source(config, seed=1)
    seen = torch.cat([source.batch(step, 2)[0] for step in range(3)])
    assert sorted(seen.flatten(1)[:, 2].tolist()) == sorted(
        source.data.points.flatten(1)[:, 2].tolist()
    )
    torch.testing.assert_close(again.batch(2, 2)[0], source.batch(2, 2)[0])


def test_digits_need_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCAE_DATA", raising=False)
    train, test = load_images("digits", "train"), load_images("digits", "test")
    assert train.images.shape == (1437, 1, 28, 28) and len(test) == 360
    assert torch.bincount(test.labels).min() >= 30
    small = load_images(ImageDataConfig(name="digits", size=8), "train+test")
    from sklearn.datasets import load_digits

    np.testing.assert_array_equal(
        small.images[:, 0], np.rint(load_digits().images * (255 / 16)).astype(np.uint8)
    )
    # Enlarging keeps the mean brightness and the picture.
    assert train.images.float().mean() == pytest.approx(
        small.images[:1437].float().mean().item(), rel=0.02
    )
    back = torch.nn.functional.interpolate(train.images.float(), (8, 8), mode="area")
    correlation = np.corrcoef(back.flatten(), small.images[:1437].float().flatten())[0, 1]
    assert correlation > 0.97


def test_list_and_check_say_what_is_there(tmp_path: Path) -> None:
    folder = data_files.write_mnist(tmp_path)
    listed = {(s.name, s.split): s for s in list_data(tmp_path)}
    assert listed["mnist", "train"].state == "found"
    assert listed["mnist40", "test"].state == "found"
    assert listed["svhn", "train"].state == "missing"
    assert "train_32x32.mat" in listed["svhn", "train"].detail
    assert listed["digits", "train"].state == "built in"
    broken = folder / "t10k-labels-idx1-ubyte.gz"
    broken.write_bytes(broken.read_bytes()[:-4])
    checked = {(s.name, s.split): s for s in check_data(tmp_path)}
    assert checked["mnist", "train"].state == "unofficial"
    assert checked["mnist", "train"].images == 12
    assert checked["mnist", "test"].state == "broken"
    assert str(broken) in checked["mnist", "test"].detail
    assert checked["cifar10", "test"].state == "missing"


def test_environment_names_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_files.write_mnist(tmp_path)
    monkeypatch.setenv("SCAE_DATA", str(tmp_path))
    assert len(load_images("mnist", "train")) == 12
    assert len(image_source(ImageDataConfig(name="mnist"))) == 12
