#!/bin/bash
# Host and Origin without a key, preflight, and the lists that open them.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

ORIGINS='
import os
def ask(method="GET", path="/v1/models", **headers):
    return http(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
'
start
py <<P
$ORIGINS
for host in ["localhost", "localhost:8000", "127.0.0.1", "127.9.9.9:1", "[::1]:8000", "LOCALHOST", "a.localhost"]:
    check(ask(Host=host).status == 200, "Host " + host)
for host in ["example.com", "example.com:8000", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "[::2]",
             "xlocalhost", ".", "127.0.0.1@example.com"]:
    a = ask(Host=host)
    check(a.status == 403, "Host " + host, a.status)
    check("http.hosts" in a.error["message"], "the error says what to change", a.body)
check(send_raw(b"GET /v1/models HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200"), "HTTP/1.0 without Host")
a = ask(Origin="http://localhost:3000")
check(a.status == 200 and a.headers["access-control-allow-origin"] == "http://localhost:3000", "a loopback origin", a.headers)
check("origin" in a.headers.get("vary", "").lower(), "Vary names Origin")
for origin in ["https://example.com", "http://localhost.example.com", "null", "file://", "http://127.0.0.1.nip.io"]:
    a = ask(Origin=origin)
    check(a.status == 403, "Origin " + origin, a.status)
    check("access-control-allow-origin" not in a.headers, "no CORS header for a refused origin", a.headers)
a = ask("OPTIONS", "/v1/chat/completions", Origin="http://localhost:3000", Access_Control_Request_Method="POST")
check(a.status in (200, 204), "preflight", a.status)
check("POST" in a.headers.get("access-control-allow-methods", ""), "preflight names the method", a.headers)
check("authorization" in a.headers.get("access-control-allow-headers", "").lower(), "and the headers", a.headers)
check(a.headers.get("access-control-allow-origin") == "http://localhost:3000", "and the origin", a.headers)
check(ask("OPTIONS", "/v1/chat/completions", Origin="https://example.com").status == 403, "preflight of a stranger")
P
stop

printf '[http]\norigins = https://app.example.com\nhosts = box.lan example.org\n' >"$T/rnbd.conf"
start
py <<P
$ORIGINS
check(ask(Host="box.lan:8000").status == 200, "a listed host")
check(ask(Host="other.lan").status == 403, "a host that is not listed")
check(ask(Origin="https://app.example.com").status == 200, "a listed origin")
check(ask(Origin="https://app.example.com.evil.example").status == 403, "a longer origin")
check(ask(Origin="http://app.example.com").status == 403, "another scheme")
P
stop

echo sesame >"$T/key"
printf '[http]\norigins = *\nhosts = *\nkey_file = %s\n' "$T/key" >"$T/rnbd.conf"
start
py <<P
$ORIGINS
check(ask("OPTIONS", "/v1/chat/completions", Origin="https://any.example").status in (200, 204), "preflight carries no key")
check(ask(Origin="https://any.example").status == 401, "the request itself must")
check(ask(Origin="https://any.example", x_api_key="sesame").status == 200, "any origin with *")
P
finish
