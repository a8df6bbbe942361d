"""The package's data files are read as PyYAML's own parser reads them."""

from importlib.resources import files

import yaml

from kernel_gym.data_files import parse_yaml


def test_a_file_is_read_as_by_the_parser_in_python() -> None:
    text = files("kernel_gym").joinpath("defaults.yaml").read_text()
    assert parse_yaml(text) == yaml.safe_load(text)
    assert parse_yaml("a: [1, 1.5, 1e-3, yes, null, 'x: y', 0x1f]") == {"a": [1, 1.5, "1e-3", True, None, "x: y", 31]}
