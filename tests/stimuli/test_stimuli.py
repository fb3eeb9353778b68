"""What options look or sound like: made from their values, by what a study file says and nothing else."""

import pytest

from askwise.errors import Failed, NotFound, Refused
from askwise.stimuli import KINDS, Content, Link, Settings

SETTING = {"gain": 10.0, "mode": "soft"}


def made(key, value, folder, **more):
    return KINDS[key](Settings(value, ("gain", "mode"), folder, **more))


def test_text_has_values_in_it(tmp_path):
    text = made("text", "{gain} dB, {mode}", tmp_path)
    assert text.of(SETTING) == Content(b"10 dB, soft", ".txt")
    assert text.of({"gain": 19.2864856, "mode": "soft"}).data == b"19.29 dB, soft"  # as people write it


def test_values_in_html_are_escaped_and_style_sheets_are_left_alone(tmp_path):
    html = made("html", "<style>p { color: red }</style><p>{mode}</p>", tmp_path)
    found = html.of({"gain": 1, "mode": "<script>"})
    assert found == Content(b"<style>p { color: red }</style><p>&lt;script&gt;</p>", ".html")
    assert made("html", "<svg>{gain}</svg>", tmp_path).of(SETTING).shown == "image"


@pytest.mark.parametrize("key", ["text", "html", "url", "command", "file"])
def test_a_name_that_is_no_parameter_is_refused(key, tmp_path):
    value = {"url": "https://a.org/{gian}.png", "command": "x {gian} {out}", "file": "{gian}.wav"}
    with pytest.raises(Refused, match=r"\{gian\}"):
        made(key, value.get(key, "{gian}"), tmp_path)


def test_a_file_is_found_by_its_values(tmp_path):
    (tmp_path / "10-soft.wav").write_bytes(b"RIFF")
    sound = made("file", "{gain}-{mode}.wav", tmp_path)
    assert sound.of(SETTING) == Content(b"RIFF", ".wav")
    with pytest.raises(Failed, match="exist for every option"):
        sound.of({"gain": 11, "mode": "soft"})


def test_a_file_of_text_has_values_in_it(tmp_path):
    (tmp_path / "card.html").write_text("<b>{gain}</b>")
    assert made("file", "card.html", tmp_path).of(SETTING).data == b"<b>10</b>"
    (tmp_path / "card.html").write_text("<b>{gian}</b>")
    with pytest.raises(Refused, match=r"\{gian\}"):
        made("file", "card.html", tmp_path)


def test_no_file_outside_the_folder_is_read(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    inside = tmp_path / "study"
    inside.mkdir()
    for name in ("../secret.txt", str(tmp_path / "secret.txt")):
        with pytest.raises(Refused, match="inside the folder"):
            made("file", name, inside)
    with pytest.raises(Refused, match="inside the folder"):
        made("file", "{mode}.txt", inside).of({"gain": 1, "mode": "../secret"})
    (inside / "linked.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(Refused, match="inside the folder"):
        made("file", "{mode}.txt", inside).of({"gain": 1, "mode": "linked"})
    with pytest.raises(Refused, match="end with one of"):
        made("file", "study.db", inside)


def test_an_address_has_quoted_values_and_tells_its_server(tmp_path):
    there = made("url", "https://lab.example.org/{mode}.png", tmp_path)
    assert there.of({"gain": 1, "mode": "a/b?c"}) == Link("https://lab.example.org/a%2Fb%3Fc.png", "image")
    assert there.origins == ("https://lab.example.org",)
    for wrong in ("ftp://a/{gain}.png", "https://{mode}/a.png", "https://a.org; script-src */{gain}.png"):
        with pytest.raises(Refused, match="be an address"):
            made("url", wrong, tmp_path)
    with pytest.raises(Refused, match="known kind"):
        made("url", "https://a.org/{gain}", tmp_path)
    assert made("url", "https://a.org/{gain}", tmp_path, shown="audio").of(SETTING).shown == "audio"


def test_a_command_writes_what_is_shown(tmp_path):
    script = tmp_path / "draw.sh"
    script.write_text('#!/bin/sh\nprintf "<svg>%s %s</svg>" "$1" "$ASKWISE_MODE" > "$2"\n')
    script.chmod(0o700)
    command = made("command", "./draw.sh {gain} {out.svg}", tmp_path)
    assert command.of({"gain": 3, "mode": "$(touch x); y"}) == Content(b"<svg>3 $(touch x); y</svg>", ".svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["draw.sh"]
    assert made("command", "./draw.sh {gain} {out}", tmp_path).of(SETTING).suffix == ".svg"  # by its content


def test_a_command_that_fails_or_writes_nothing_is_told(tmp_path):
    for words, message in (("false {out}", "exit code 1"), ("true {out}", "got nothing")):
        with pytest.raises(Failed, match=message):
            made("command", words, tmp_path).of(SETTING)
    with pytest.raises(Failed, match="time-out"):
        made("command", "sh -c 'sleep 9' {out}", tmp_path, timeout=0.05).of(SETTING)
    with pytest.raises(Refused, match="name one file to write"):
        made("command", "./draw.sh {gain}", tmp_path)
    with pytest.raises(Refused, match="no shell interprets"):
        made("command", "./draw.sh {gain} > {out}", tmp_path)


def test_a_function_returns_what_is_shown(tmp_path):
    code = (
        "import pathlib\n"
        "def render(s): return f'<p>{s[\"gain\"]}</p>'\n"
        "def picture(s): return b'\\x89PNG\\r\\n\\x1a\\n'\n"
        "def wrong(s): return 3\n"
        "def broken(s): return 1 / 0\n"
    )
    (tmp_path / "stimuli_of_a_test.py").write_text(code)
    assert made("render", "stimuli_of_a_test", tmp_path).of(SETTING) == Content(b"<p>10.0</p>", ".html")
    assert made("render", "stimuli_of_a_test:picture", tmp_path).of(SETTING).suffix == ".png"
    with pytest.raises(Failed, match="got 3"):
        made("render", "stimuli_of_a_test:wrong", tmp_path).of(SETTING)
    with pytest.raises(Failed, match="ZeroDivisionError"):
        made("render", "stimuli_of_a_test:broken", tmp_path).of(SETTING)
    with pytest.raises(Refused, match="name a function"):
        made("render", "stimuli_of_a_test:none", tmp_path)
    with pytest.raises(NotFound):
        made("render", "no_such_module", tmp_path)


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (b"RIFF....WAVEfmt ", ".wav"),
        (b"\xff\xd8\xff\xe0", ".jpg"),
        (b"\0\0\0\x18ftypmp42", ".mp4"),
        (b"OggS", ".ogg"),
        (b"plain words", ".txt"),
        (b"<?xml version='1.0'?><svg/>", ".svg"),
        (b"<p>", ".html"),
    ],
)
def test_bytes_tell_what_they_are(data, suffix):
    assert Content.of_bytes(data).suffix == suffix


def test_bytes_that_tell_nothing_are_refused():
    with pytest.raises(Refused, match="known type"):
        Content.of_bytes(b"\x80\x81\x82")
