"""Stands for a training that a server runs, and ends as that does; see forked.py.

forked_client.py SOCKET SECONDS SCRIPT ARGUMENT...
"""

import json
import os
import signal
import socket
import sys

path, seconds, script, *arguments = sys.argv[1:]
request = {
    "seconds": float(seconds),
    "script": os.path.abspath(script),
    "arguments": arguments,
    "folder": os.getcwd(),
    "environment": dict(os.environ),
}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
    try:
        connection.connect(path)
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
        answer = connection.recv(1000)
    except OSError as error:
        sys.exit(f"the server of forked trainings cannot be asked: {error}")
if not answer:
    sys.exit("the server of forked trainings has ended")
status, why = json.loads(answer)
if why:
    print(why, file=sys.stderr, flush=True)
if os.WIFSIGNALED(status):
    number = os.WTERMSIG(status)
    if number == signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
sys.exit(os.WEXITSTATUS(status))
