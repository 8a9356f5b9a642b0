#!/usr/bin/env python3
"""An OpenAI-compatible endpoint on this machine that gives written answers, to try `--coder llm`.

    scripted_endpoint.py ANSWERS COMMAND …

ANSWERS is a folder of text files: the answers in the order of their names, one a question; then it
refuses (401), so that the search goes on without it. COMMAND runs meanwhile, with the endpoint's
URL in the place of @URL; its exit status is this program's. A file NAME.status holds a number
instead: the HTTP status to refuse with.
"""

import http.server
import json
import pathlib
import subprocess
import sys
import threading


class Endpoint(http.server.ThreadingHTTPServer):
    def __init__(self, answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.lock = threading.Lock()

    def next_answer(self):
        with self.lock:
            return self.answers.pop(0) if self.answers else (401, "no further answers")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status, text = self.server.next_answer()
        self.send_response(status)
        kind = "text/event-stream" if status == 200 else "application/json"
        self.send_header("Content-Type", kind)
        self.end_headers()
        if status != 200:
            self.say({"error": {"message": text}}, "")
            return
        for line in text.splitlines(keepends=True):
            self.say({"choices": [{"index": 0, "delta": {"content": line}}]})
        self.say({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"data: [DONE]\n\n")

    def say(self, event, mark="data: "):
        self.wfile.write(f"{mark}{json.dumps(event)}\n\n".encode())

    def log_message(self, *words):
        pass


def answer_of(path):
    text = path.read_text()
    return (int(text), "scripted to fail") if path.suffix == ".status" else (200, text)


def main():
    folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    endpoint = Endpoint([answer_of(path) for path in sorted(folder.iterdir())])
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{endpoint.server_port}/v1"
    done = subprocess.run([word.replace("@URL", url) for word in command], check=False)
    endpoint.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
