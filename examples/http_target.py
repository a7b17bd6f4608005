"""Evaluate a service over HTTP; a small server on this machine stands in for yours.

Run: python http_target.py
The endpoint gets {"id", "input", "options"} and answers {"output": …}; in an eval file write `target: {http: URL}`.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from proctor import HttpTarget, evaluate, exact_match


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_broken = request["input"] == "boom"
        body = json.dumps({"error": "no such word"} if is_broken else {"output": request["input"].upper()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
target = HttpTarget(f"http://127.0.0.1:{server.server_port}/answer")
dataset = [{"id": word, "input": word, "expected": word.upper()} for word in ("yes", "no", "boom")]
report = evaluate(target, dataset, exact_match, retries=1)
server.shutdown()
server.server_close()
print(f"{report.pass_rate:.0%} of {report.successful} passed, {report.errors} error")
print(report.results[2].error)

# Output:
# 100% of 2 passed, 1 error
# …no such word…
