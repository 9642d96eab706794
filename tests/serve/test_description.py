"""The OpenAPI description is true: schemathesis finds no request that the server fails on or answers otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from serve.servers import Server

# What a description cannot say: the names of models and languages, and lengths in a model's tokens.
UNSAID = "positive_data_acceptance"


@pytest.mark.parametrize("key", [None, "correct-horse"])
def test_schemathesis_finds_nothing(catalogue, tmp_path, key):
    with Server(catalogue, api_key=key) as server:
        command = [Path(sys.executable).with_name("st"), "run", f"{server.url}/openapi.json", "--no-color"]
        command += ["--checks", "all", "--exclude-checks", UNSAID, "--max-time", "10", "--max-examples", "25"]
        command += ["--generation-deterministic"]
        if key is not None:
            command += ["--header", f"Authorization: Bearer {key}"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert "Tested: 12" in done.stdout, done.stdout
        text = server.ask("/metrics", headers={"Authorization": f"Bearer {key}"}).body.decode()
        assert 'status="5' not in text


def test_description_has_the_limits_of_this_server(catalogue):
    with Server(catalogue, max_inputs=7, max_beam=3, max_input_length=90) as server:
        schemas = server.ask("/openapi.json").json["components"]["schemas"]
        inputs = schemas["PredictRequest"]["properties"]["inputs"]
        assert (inputs["maxItems"], inputs["items"]["maxLength"]) == (7, 90)
        assert schemas["PredictRequest"]["properties"]["beam"]["anyOf"][0]["maximum"] == 3
        assert "HTTPValidationError" not in schemas
