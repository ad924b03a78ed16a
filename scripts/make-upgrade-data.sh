#!/bin/bash
# Makes the data directory and the backups of a build that later builds must open:
#
#   scripts/make-upgrade-data.sh BINARY NAME
#
# writes cmd/koine/testdata/upgrade/NAME.tar.gz with data/ (stopped in order), killed/
# (the same, killed after its last write), full.koine, incremental.koine, and
# expect.json, which has the answers. It is run once for each release and step, with the
# binary of that release. It needs curl and jq.
set -euo pipefail
binary=$(realpath "$1") name=$2
cd "$(dirname "$0")/.."
out=$PWD/cmd/koine/testdata/upgrade
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server"; wait "$server"; } 2>/dev/null || true; rm -rf "$work"' EXIT
port=$((20000 + RANDOM % 20000))
url=http://127.0.0.1:$port
cat >"$work/policy.yaml" <<'YAML'
rules:
  - name: pay-needs-review
    on: update
    when: patch.predicate == "https://example.org/salary"
    effect: review
    message: Claims about pay are reviewed
    review: {approvals: 1, role: reviewer}
YAML

start() {
  "$binary" serve --data "$work/data" --auth keys --listen 127.0.0.1:$port --policy "$work/policy.yaml" --prefix ex=https://example.org/ --allow-private-webhooks >"$work/log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    curl -sf "$url/readyz" >/dev/null && return
    sleep 0.1
  done
  cat "$work/log" >&2
  exit 1
}
stop() { # SIGNAL
  kill -"$1" "$server"
  wait "$server" || true
  server=
}
key() { KOINE_URL=$url KOINE_KEY=$admin "$binary" keys create "$@" 2>/dev/null | grep -oE 'ak_live_\S+'; }
rpc() { # KEY METHOD PARAMS
  curl -sS "$url/a2a" -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' \
    -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$2\",\"params\":$3}" | jq -ce 'if .error then error(.error | tostring) else .result end'
}
graphql() { # KEY QUERY
  jq -cn --arg q "$2" '{query: $q}' | curl -sS "$url/graphql" -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -d @- |
    jq -ce 'if .errors then error(.errors | tostring) else . end'
}
fact() { echo "{\"op\":\"add\",\"statement\":{\"subject\":{\"id\":\"$1\"},\"predicate\":{\"id\":\"$2\"},\"object\":$3}}"; }

start
admin=$(grep -oE 'ak_live_[0-9A-Za-z_]+' "$work/log" | head -1)
dora=$(key --agent dora) chen=$(key --agent chen --role reviewer) counter=$(key --agent counter)

# Facts: shared, of the past, held for review, and in a private graph.
first=$(rpc "$dora" knowledge/update "{\"mutations\":[$(fact ex:rome ex:people '{"value":2700000}'),$(fact ex:rome rdfs:label '{"value":"Rome"}')],\"metadata\":{\"koine\":{\"idempotencyKey\":\"rome-1\"}}}")
rpc "$dora" knowledge/update "{\"mutations\":[$(fact ex:rome ex:people '{"value":2800000}' | sed s/add/replace/)]}" >/dev/null
proposal=$(rpc "$dora" knowledge/update "{\"mutations\":[$(fact ex:bruno ex:salary '{"value":60000}')]}" | jq -r .proposalId)
graphql "$dora" 'mutation { createGraph(input: {iri: "agent://dora/notes"}) { graph { iri } } }' >/dev/null
rpc "$dora" knowledge/update "{\"mutations\":[$(fact ex:rome ex:note '{"value":"doubtful"}' | sed 's#"statement":{#"statement":{"graph":"agent://dora/notes",#')]}" >/dev/null
many=$(for i in $(seq 30); do fact "ex:city-$i" rdfs:label "{\"value\":\"City $i\"}"; done | paste -sd,)
rpc "$dora" knowledge/update "{\"mutations\":[$many]}" >/dev/null
# One literal, its language written in two ways.
for tag in en-GB EN-gb; do
  rpc "$dora" knowledge/update "{\"mutations\":[$(fact ex:colour ex:name "{\"value\":\"Colour\",\"language\":\"$tag\"}")]}" >/dev/null
done
language=$(graphql "$dora" '{ statements(where: {subject: {eq: "ex:colour"}}) { nodes { object { ... on Literal { language } } } } }' | jq -c '[.data.statements.nodes[].object.language]')
page=$(graphql "$dora" '{ statements(first: 5, where: {predicate: {eq: "rdfs:label"}}) { nodes { object { ... on Literal { value } } } pageInfo { endCursor hasNextPage } } }')

# A channel, its messages, and a position between them.
channel=$(rpc "$dora" channels/create '{"name":"lab","members":[{"principalId":"agent://chen"}]}' | jq -r '.channel.id // .channel.channelId')
message() { rpc "$dora" channels/publish "{\"channelId\":\"$channel\",\"parts\":[{\"type\":\"text\",\"text\":\"$1\"}],\"idempotencyKey\":\"$1\"}"; }
said=$(message one)
position=$(graphql "$dora" '{ me { id } }' | jq -r .extensions.position)
message two >/dev/null
KOINE_URL=$url KOINE_KEY=$admin "$binary" backup -o "$work/full.koine" 2>/dev/null
message three >/dev/null

# An agent behind the hub that was not told its letters, and a hook for a task.
curl -sSf -X PUT "$url/agents/counter" -H "Authorization: Bearer $counter" -H 'Content-Type: application/json' \
  -d '{"name":"Counter","description":"Counts","version":"1.0","capabilities":["count"]}' >/dev/null
ask() { # MESSAGE-ID CONFIGURATION
  curl -sS "$url/agents/counter/a2a" -H "Authorization: Bearer $dora" -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' \
    -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{\"messageId\":\"$1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"How many?\"}]$3},\"configuration\":$2}}" |
    jq -re 'if .error then error(.error | tostring) else .result.task.id end'
}
task=$(ask question-1 '{"returnImmediately":true,"taskPushNotificationConfig":{"id":"hook","url":"http://127.0.0.1:9/hook","token":"secret-token"}}' '')
ask question-2 '{"returnImmediately":true}' ",\"taskId\":\"$task\"" >/dev/null

# A scope with a channel.
scope=$(graphql "$dora" 'mutation { createScope(input: {title: "Count cells", access: {agentIds: ["agent://chen"]}}) { scope { id } } }' | jq -r .data.createScope.scope.id)
graphql "$dora" "mutation { publishMessage(input: {scopeId: \"$scope\", channelName: \"progress\", parts: [{type: \"text\", text: \"begun\"}]}) { message { sequence } } }" >/dev/null
KOINE_URL=$url KOINE_KEY=$admin "$binary" backup --since "$work/full.koine" -o "$work/incremental.koine" 2>/dev/null
head=$(graphql "$dora" '{ me { id } }' | jq -r .extensions.revision)
stop KILL
cp -r --sparse=always "$work/data" "$work/killed"
start
stop TERM

jq -n --arg admin "$admin" --arg dora "$dora" --arg chen "$chen" --arg counter "$counter" --argjson first "$first" --arg proposal "$proposal" \
  --argjson page "$page" --arg channel "$channel" --argjson said "$said" --arg position "$position" --arg task "$task" --argjson head "$head" --arg scope "$scope" --argjson language "$language" \
  '{keys: {admin: $admin, dora: $dora, chen: $chen, counter: $counter}, first: $first, proposal: $proposal, page: $page, channel: $channel,
    message: $said.event, position: $position, task: $task, scope: $scope, head: $head, language: $language}' >"$work/expect.json"
mkdir -p "$out"
tar -C "$work" --sparse -cf - --sort=name --mtime=@0 --owner=0 --group=0 data killed full.koine incremental.koine expect.json | gzip -9n >"$out/$name.tar.gz"
ls -l "$out/$name.tar.gz"
