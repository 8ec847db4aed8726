"""Findings told to services of AWS: real trainings, and a server that checks every signature."""

from __future__ import annotations

import http.client
import json
import re
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from forked import Server
from s3_server import S3Server
from trainings import DIGITS, Outcome, traindbg, watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REGION = "eu-west-1"


class Recorder:
    """Passes requests on to a server as they are, and keeps them with the server's answers."""

    def __init__(self, port: int) -> None:
        self.seen: list[tuple[str, dict[str, str], bytes, int]] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.putrequest("POST", self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                content = answer.read()
                headers = {name.lower(): value for name, value in self.headers.items()}
                recorder.seen.append((self.path, headers, body, answer.status))
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                connection.close()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def forms(self, action: str) -> list[dict[str, str]]:
        """The calls by the query protocol that were accepted."""
        forms = []
        for _, _, body, status in self.seen:
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            if form.get("Action") == action:
                assert status == 200
                forms.append(form)
        return forms

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    made = S3Server()
    # Functions are not run, and no container is asked for.
    configuration = json.dumps({"lambda": {"use_docker": False}}).encode()
    request = urllib.request.Request(
        f"{made.url}/moto-api/config",
        data=configuration,
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=30).close()
    yield made
    made.stop()


@pytest.fixture
def recorder(server: S3Server) -> Iterator[Recorder]:
    made = Recorder(server.port)
    yield made
    made.close()


def client(server: S3Server, service: str) -> Any:
    import boto3

    return boto3.client(
        service,
        endpoint_url=server.url,
        region_name=REGION,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
    )


class Teller:
    """Tells the findings of a faulty training as options say, with credentials of the server."""

    def __init__(self, faulty: Outcome, server: S3Server, recorder: Recorder, folder: Path) -> None:
        self.faulty, self.server, self.recorder, self.folder = faulty, server, recorder, folder
        self.told = 0

    def tell(self, *options: str, **extra: str) -> Outcome:
        environment = self.server.environment(self.recorder.url, AWS_REGION=REGION) | extra
        self.told += 1
        outcome = watched(self.faulty, self.folder / f"runs{self.told}", *options, **environment)
        assert outcome.code == 0, outcome.stderr
        for path in outcome.run.rglob("*"):
            assert not path.is_file() or self.server.secret_key.encode() not in path.read_bytes()
        assert self.server.secret_key not in outcome.stdout + outcome.stderr
        return outcome


@pytest.fixture
def teller(faulty: Outcome, server: S3Server, recorder: Recorder, tmp_path: Path) -> Teller:
    return Teller(faulty, server, recorder, tmp_path)


def told(outcome: Outcome) -> set[str]:
    return {f["rule"] for f in outcome.verdict["findings"] if f["severity"] != "info"}


def results(outcome: Outcome) -> set[tuple[str, str]]:
    lines = (outcome.run / "actions.jsonl").read_text().splitlines()
    return {(entry["action"], entry["result"]) for entry in map(json.loads, lines)}


def test_a_topic_a_phone_and_a_metric(teller: Teller, server: S3Server, recorder: Recorder) -> None:
    topic = client(server, "sns").create_topic(Name="findings")["TopicArn"]
    sqs = client(server, "sqs")
    queue = sqs.create_queue(QueueName="heard")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    client(server, "sns").subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=arn["Attributes"]["QueueArn"]
    )
    options = (
        "--notify",
        f"sns:{topic}",
        "--notify",
        "sns:+491234567",
        "--notify",
        "cloudwatch:Night",
    )
    outcome = teller.tell(*options)
    assert results(outcome) == {("sns", "done"), ("sms", "done"), ("cloudwatch", "done")}

    heard = []
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            heard.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert {m["MessageAttributes"]["rule"]["Value"] for m in heard} == told(outcome)
    assert len({m["MessageAttributes"]["id"]["Value"] for m in heard}) == len(heard)
    (exploding,) = [m for m in heard if "exploding_gradient" in m["Subject"]]
    assert exploding["Subject"].startswith("error: exploding_gradient at step ")
    assert "Fix: " in exploding["Message"]
    assert re.search(r"\nCode: .*train\.py:\d+", exploding["Message"])

    texts = [form["Message"] for form in recorder.forms("Publish") if "PhoneNumber" in form]
    assert len(texts) == len(told(outcome))
    assert all(len(text) <= 140 and text.startswith("traindbg: ") for text in texts)

    metrics = client(server, "cloudwatch").list_metrics(Namespace="Night")["Metrics"]
    dimensions = [{d["Name"]: d["Value"] for d in m["Dimensions"]} for m in metrics]
    assert {} in dimensions
    assert {d["Rule"] for d in dimensions if d} == told(outcome)


def test_an_address_becomes_a_subscriber_once(
    teller: Teller, server: S3Server, recorder: Recorder
) -> None:
    options = ("--notify", "sns:me+train@example.org")
    for _ in range(2):
        outcome = teller.tell(*options)
        assert results(outcome) == {("sns", "done")}
    assert len(recorder.forms("Subscribe")) == 1
    sns = client(server, "sns")
    (topic,) = [
        t["TopicArn"] for t in sns.list_topics()["Topics"] if t["TopicArn"].endswith(":traindbg")
    ]
    (subscription,) = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "me+train@example.org")
    attributes = sns.get_subscription_attributes(SubscriptionArn=subscription["SubscriptionArn"])
    policy = json.loads(attributes["Attributes"]["FilterPolicy"])
    assert policy == {"email": ["me+train@example.org"]}
    for form in recorder.forms("Publish"):
        assert form["MessageAttributes.entry.5.Value.StringValue"] == "me+train@example.org"


def test_a_bus_and_a_function(teller: Teller, server: S3Server, recorder: Recorder) -> None:
    events, sqs = client(server, "events"), client(server, "sqs")
    queue = sqs.create_queue(QueueName="events")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
    events.put_rule(Name="all", EventPattern=json.dumps({"source": ["traindbg"]}))
    events.put_targets(Rule="all", Targets=[{"Id": "1", "Arn": arn["QueueArn"]}])
    function = make_function(server)
    options = ("--notify", "events:default", "--notify", f"lambda:{function}")
    outcome = teller.tell(*options)
    assert results(outcome) == {("events", "done"), ("lambda", "done")}
    heard = []
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            heard.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert {event["detail-type"] for event in heard} == {"Training Finding"}
    assert {event["detail"]["finding"]["rule"] for event in heard} == told(outcome)
    invoked = [
        (headers, json.loads(body), status)
        for path, headers, body, status in recorder.seen
        if path.endswith("/invocations")
    ]
    assert {body["finding"]["rule"] for _, body, _ in invoked} == told(outcome)
    for headers, _, status in invoked:
        assert headers["x-amz-invocation-type"] == "Event"
        assert status == 202


def make_function(server: S3Server) -> str:
    """The ARN of a function, whose colons a path holds encoded."""
    import io
    import zipfile

    role = client(server, "iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("f.py", "def handler(event, context):\n    return None\n")
    made = client(server, "lambda").create_function(
        FunctionName="on-finding",
        Runtime="python3.11",
        Role=role["Role"]["Arn"],
        Handler="f.handler",
        Code={"ZipFile": code.getvalue()},
    )
    return str(made["FunctionArn"])


def test_a_wrong_key_is_refused_and_said(
    teller: Teller, server: S3Server, recorder: Recorder
) -> None:
    topic = client(server, "sns").create_topic(Name="guarded")["TopicArn"]
    targets = (f"sns:{topic}", "cloudwatch:Night", "events:default", "lambda:on-finding")
    options = [word for target in targets for word in ("--notify", target)]
    outcome = teller.tell(*options, AWS_SECRET_ACCESS_KEY="of-somebody-else")
    assert {status for _, _, _, status in recorder.seen} == {403}
    assert len(recorder.seen) == 4 * len(told(outcome)), "what is refused is not tried again"
    assert "SignatureDoesNotMatch" in outcome.stderr
    assert all("403" in result for _, result in results(outcome))


def test_a_dry_run_asks_nobody(teller: Teller, recorder: Recorder) -> None:
    options = ("--notify", "sns:+491234567", "--notify-dry-run")
    outcome = teller.tell(*options)
    assert results(outcome) == {("sms", "dry run")}
    assert not recorder.seen


# Actions as the configuration package of SageMaker Debugger writes them.


def test_actions_of_the_original_are_taken(
    teller: Teller, recorder: Recorder, tmp_path: Path
) -> None:
    actions = tmp_path / "actions.json"
    wanted = [
        {"name": "StopTraining", "training_job_prefix": "Other-Job"},
        {"name": "Email", "endpoint": "me@example.org"},
        {"name": "sms", "endpoint": "+491234567"},
    ]
    actions.write_text(json.dumps(wanted).replace('"', '\\"'))
    options = ("--actions-json", str(actions))
    outcome = teller.tell(*options)
    assert "stoptraining is for jobs that begin with 'other-job'" in outcome.stderr
    assert results(outcome) == {("sns", "done"), ("sms", "done")}
    assert {form["Name"] for form in recorder.forms("CreateTopic")} == {"SMDebugRules"}
    subscribers = {form["Endpoint"] for form in recorder.forms("Subscribe")}
    assert subscribers == {"me@example.org", "+491234567"}
    names = {form["MessageAttributes.entry.5.Name"] for form in recorder.forms("Publish")}
    assert names == {"email", "phone_num"}


def test_actions_of_a_rule_are_for_that_rule(
    teller: Teller, recorder: Recorder, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.json"
    action = {"name": "email", "endpoint": "only@example.org"}
    exploding = {"rule_to_invoke": "ExplodingTensor", "action_json": json.dumps(action)}
    rules.write_text(json.dumps([{"RuleConfigurationName": "mine", "RuleParameters": exploding}]))
    outcome = teller.tell("--rules-json", str(rules), "--act-at", "info")
    assert results(outcome) == {("sns", "done")}
    published = recorder.forms("Publish")
    assert {form["MessageAttributes.entry.2.Value.StringValue"] for form in published} == {
        "ExplodingTensor"
    }


@pytest.mark.parametrize("way", ["of any rule", "of a rule"])
def test_stoptraining_stops_a_run_of_that_name(tmp_path: Path, way: str, forked: Server) -> None:
    action = '{"name": "stoptraining", "training_job_prefix": "night-"}'
    if way == "of any rule":
        options = ("--actions-json", action)
    else:
        rules = tmp_path / "rules.json"
        parameters = {"rule_to_invoke": "ExplodingTensor", "action_json": action}
        rules.write_text(json.dumps([{"RuleParameters": parameters}]))
        options = ("--rules-json", str(rules), "--act-at", "info")
    outcome = forked.run(
        tmp_path / "runs",
        DIGITS,
        "--fault",
        "learning_rate",
        options=("--name", "Night-7", *options),
    )
    assert outcome.code == 90, outcome.stderr
    assert outcome.end["stopped_by_rule"] is True
    stopped_by = {entry for entry in results(outcome) if entry[0] == "stop"}
    assert stopped_by == {("stop", "done")}
    if way == "of a rule":
        assert outcome.end["reason"] == "stopped by rule ExplodingTensor"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "stop_training"}', "did you mean 'stoptraining'?"),
        ('[{"name": "email", "endpont": "a@b.org"}]', "did you mean 'endpoint'?"),
        ('{"name": "email", "endpoint": "nobody"}', "is no address"),
        ('{"name": "sms", "endpoint": "0123"}', "is no phone number"),
        ('{"name": ', "is not JSON"),
    ],
)
def test_actions_that_are_none_are_said_before_anything_starts(text: str, said: str) -> None:
    command = ("run", "--actions-json", text, "--", "python", "-c", "print('ran')")
    result = traindbg(*command)
    assert result.returncode == 2
    assert said in result.stderr
    assert "ran" not in result.stdout
