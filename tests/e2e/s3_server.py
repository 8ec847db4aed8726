"""A real S3 server process on loopback that checks signatures, and what is in its buckets."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

BUCKET = "runs-bucket"


class S3Server:
    """`moto_server`. Its first three actions need no signature: they make a user and her key."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        program = Path(sys.executable).parent / "moto_server"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        environment["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"
        self._process = subprocess.Popen(
            [str(program), "-H", "127.0.0.1", "-p", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._wait()
        everything = (
            '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}'
        )
        self._iam(Action="CreateUser", UserName="u")
        self._iam(Action="PutUserPolicy", UserName="u", PolicyName="p", PolicyDocument=everything)
        made = ElementTree.fromstring(self._iam(Action="CreateAccessKey", UserName="u"))
        found = {element.tag.rpartition("}")[2]: element.text for element in made.iter()}
        self.access_key = str(found["AccessKeyId"])
        self.secret_key = str(found["SecretAccessKey"])
        self.client = self._client()
        self.client.create_bucket(Bucket=BUCKET)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self, url: str | None = None, **extra: str) -> dict[str, str]:
        """What `traindbg` needs to talk to it, directly or through a proxy."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_ENDPOINT_URL": url or self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null/none",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null/none",
            **extra,
        }

    def keys(self, prefix: str) -> dict[str, int]:
        """Keys and sizes of all objects under a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {o["Key"]: o["Size"] for page in pages for o in page.get("Contents", [])}

    def content(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _client(self) -> Any:
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )

    def _wait(self) -> None:
        for _ in range(600):
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=1),
            ):
                return
            assert self._process.poll() is None, "moto_server ended"
            time.sleep(0.1)
        raise AssertionError("moto_server does not listen")

    def _iam(self, **form: str) -> bytes:
        request = urllib.request.Request(
            self.url,
            data=urlencode({"Version": "2010-05-08", **form}).encode(),
            headers={
                "Authorization": "AWS4-HMAC-SHA256 "
                "Credential=any/20260101/us-east-1/iam/aws4_request, "
                "SignedHeaders=host, Signature=any"
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())
