"""A web server that gives files of a folder, whole or in parts: serve.py PORT FOLDER."""

import http.server
import os
import re
import sys


class Files(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        path = os.path.join(sys.argv[2], os.path.basename(self.path))
        if not os.path.isfile(path):
            return self.send_error(404)
        with open(path, "rb") as file:
            body = file.read()
        part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if part:
            body = body[int(part[1]) : int(part[2]) + 1]
        self.send_response(206 if part else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Files).serve_forever()
