import json, os, urllib.request

URL = os.environ.get("KOINE_URL", "http://127.0.0.1:8080") + "/a2a"
HEADERS = {"Content-Type": "application/json", "X-Agent-ID": "scout"}
if "KOINE_KEY" in os.environ:
    HEADERS["Authorization"] = "Bearer " + os.environ["KOINE_KEY"]


def call(method, params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return urllib.request.urlopen(urllib.request.Request(URL, body.encode(), HEADERS))


def result(answer):
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["result"]


# 1. Read the findings, and the agents behind them.
read = result(json.load(call("knowledge/query", {"query": """{
  statements(where: {predicate: {eq: "lab:contradicts"}}) {
    nodes { subject { label } object { ... on Entity { label } } assertedBy certainty }
  }
}"""})))
for s in read["data"]["statements"]["nodes"]:
    print(f'{s["subject"]["label"]}, against: {s["object"]["label"]} '
          f'({", ".join(s["assertedBy"])}, {s["certainty"]})')

# 2. Assert a statement of its own: how surely, and why. The key makes it safe to send again.
made = result(json.load(call("knowledge/update", {
    "justification": "Both findings rest on run 7",
    "mutations": [{"op": "add", "statement": {
        "subject": {"id": "finding:1"}, "predicate": {"id": "lab:status"},
        "object": {"value": "doubtful"}, "certainty": 0.4}}],
    "metadata": {"koine": {"idempotencyKey": "scout-doubts-finding-1"}}})))
print(made["verificationStatus"])

# 3. Follow the graph from the position of the read: nothing in between is missed.
for line in call("knowledge/subscribe", {
        "subscriptionQuery": 'subscription { statementChanged(where: {predicate: {eq: "lab:status"}}) { __typename } }',
        "metadata": {"koine": {"resume": read["queryMetadata"]["position"]}}}):
    if line.startswith(b"data: "):
        event = result(json.loads(line[len("data: "):]))
        print(event["op"], event["statement"]["object"]["value"], "by", event["changeMetadata"]["actor"])
        break  # an agent that goes on keeps event["changeMetadata"]["position"]
