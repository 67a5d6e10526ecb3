#!/bin/bash
# Keys: every path but /health wants one, in either header; a reload takes new ones.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

printf '# keys\n\n  sesame\nsecond key with spaces\r\n' >"$T/key"
start --key-file "$T/key" --model tiny="$TINY"
py <<'P'
def status(path="/v1/models", **headers):
    return http("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()}).status

check(status("/health") == 200, "/health needs no key")
for path in ["/metrics", "/v1/models", "/v1/models/tiny"]:
    a = http("GET", path)
    check(a.status == 401, f"{path} needs a key", a.status)
    check(a.error["type"] == "authentication_error", "the error has its type", a.body)
    check(a.headers.get("www-authenticate") == "Bearer", "401 says how", a.headers)
check(http("POST", "/v1/chat/completions", chat_body()).status == 401, "a chat needs a key")
check(status(Authorization="Bearer sesame") == 200, "Bearer")
check(status(Authorization="bearer sesame") == 200, "the scheme in lower case")
check(status(x_api_key="sesame") == 200, "x-api-key")
check(status(x_api_key="second key with spaces") == 200, "the second key of the file")
for wrong in ["", "sesam", "sesame2", "SESAME", "sesamesesame", "# keys", " ", "\u00e9", "x" * 10000]:
    check(status(x_api_key=wrong.encode("latin1")) == 401, "a wrong key", wrong)
    check(status(Authorization=b"Bearer " + wrong.encode("latin1")) == 401, "a wrong key as Bearer", wrong)
check(status(Authorization="Basic sesame") == 401, "another scheme")
check(status(Authorization="Bearer") == 401, "a scheme alone")
a = http("POST", "/v1/chat/completions", chat_body(), {"Authorization": "Bearer sesame"})
check(a.status == 200, "a chat with a key", a.status, a.body)
check(http("GET", "/v1/models", headers={"Host": "example.com", "x-api-key": "sesame"}).status == 200,
      "with a key any Host will do")
# The keys change while it runs.
with open(T + "/key", "w", encoding="ascii") as f:
    f.write("other\n")
rpc("server.reload")
check(status(x_api_key="sesame") == 401, "the old key is gone after a reload")
check(status(x_api_key="other") == 200, "the new key holds after a reload")
with open(T + "/key", "w", encoding="ascii") as f:
    f.write("\n")
m = Rpc().call("server.reload")
check("error" in m, "an empty key file is refused", m)
check(status() == 401, "and the door stays locked")
check(status(x_api_key="other") == 200, "and the old key holds")
P
if grep -q sesame "$T/log"; then fail "a key stands in the log"; fi
finish
